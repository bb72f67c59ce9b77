#include "common/program/program_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProgramTexts : public ::testing::Test {
 protected:
  ProgramTexts() : app_("Does things.", "do-it") {
    app_.set_version_flag("--version", "1");
    CLI::App* copy = app_.add_subcommand("copy", "Copies what .is there\\here");
    copy->add_option("-o,--output", text_, "How it is said")
        ->check(CLI::IsMember({"text", "json"}));
    copy->add_option("--to", text_, "A folder; isn't made");
    copy->add_option("FILE", files_, "The files")->required();
    copy->footer("'Example':\n.  do-it copy a-b");
    app_.add_subcommand("secret", "For tests")->group("");
    copy->add_option("--secret", text_, "For tests")->group("");
    app_.add_subcommand("other", "Hands its words on")->prefix_command();
  }

  CLI::App app_;
  std::string text_;
  std::vector<std::string> files_;
};

TEST_F(ProgramTexts, CompletionInBashHasCommandsOptionsAndChoices) {
  const std::string script = completion_script(app_, "bash");
  EXPECT_THAT(script, HasSubstr("    ('') values=(copy other) options=(-h --help --version) ;;\n"));
  EXPECT_THAT(script,
              HasSubstr("    ('copy') values=() options=(-h --help -o --output --to) ;;\n"));
  EXPECT_THAT(script, HasSubstr("    ('copy -o') values=(text json) options=() ;;\n"));
  EXPECT_THAT(script, HasSubstr("    ('copy --to') values=() options=() ;;\n"));
  EXPECT_THAT(script,
              HasSubstr("    ('other') values=() options=($(\"$program\" \"$command\" --help"));
  EXPECT_THAT(script, HasSubstr("-F _do_it do-it\n"));
  EXPECT_THAT(script, Not(HasSubstr("secret")));
}

TEST_F(ProgramTexts, CompletionInZshHasDescriptionsToo) {
  const std::string script = completion_script(app_, "zsh");
  EXPECT_THAT(script, StartsWith("#compdef do-it\n"));
  EXPECT_THAT(script, HasSubstr("    ('') values=('copy:Copies what .is there\\here' "
                                "'other:Hands its words on') options=("));
  EXPECT_THAT(script, HasSubstr(R"( '--to:A folder; isn'\''t made') ;;)"));
  EXPECT_THAT(script, HasSubstr("    ('copy -o') values=(text json) options=() ;;\n"));
  EXPECT_THAT(script, HasSubstr("compdef _do_it do-it\n"));
  EXPECT_THAT(script, Not(HasSubstr("secret")));
}

TEST_F(ProgramTexts, CompletionInFishHasDescriptionsToo) {
  const std::string script = completion_script(app_, "fish");
  EXPECT_THAT(script, HasSubstr("complete -c do-it -n '__fish_use_subcommand' -f -a copy "
                                "-d 'Copies what .is there\\\\here'\n"));
  const std::string copy = "complete -c do-it -n '__fish_seen_subcommand_from copy' ";
  EXPECT_THAT(script, HasSubstr(copy + "-s o -l output -x -a 'text json' -d 'How it is said'\n"));
  EXPECT_THAT(script, HasSubstr(copy + "-l to -r -d 'A folder; isn\\'t made'\n"));
  EXPECT_THAT(script, HasSubstr("-a \"(do-it other --help 2>/dev/null | string match"));
  EXPECT_THAT(script, Not(HasSubstr("secret")));
}

TEST_F(ProgramTexts, ManPageHasCommandsOptionsAndExamplesEscaped) {
  const std::string page = man_page(app_, "1.2-3");
  EXPECT_THAT(page, HasSubstr(".TH DO\\-IT 1 \"\" \"do\\-it 1.2\\-3\" \"User Commands\"\n"));
  EXPECT_THAT(page, HasSubstr(".SH NAME\ndo\\-it \\- Does things.\n"));
  EXPECT_THAT(page,
              HasSubstr(".SS do\\-it copy [OPTION...] FILE...\nCopies what .is there\\ehere\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fIFILE\\fR\nThe files\n"));
  EXPECT_THAT(
      page,
      HasSubstr(".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fItext json\\fR\nHow it is said\n"));
  EXPECT_THAT(page, HasSubstr(".nf\n\\&'Example':\n\\&.  do\\-it copy a\\-b\n.fi\n"));
  EXPECT_THAT(page, HasSubstr("do\\-it other \\-\\-help lists its options.\n"));
  EXPECT_THAT(page, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace muster
