#!/usr/bin/env python3
"""Tests what deploy/site/pages.py makes of pages for the site."""

import pathlib
import sys
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "deploy/site"))
import pages  # noqa: E402


def on_site(text, uri="guides/data.md"):
    return pages.on_page_markdown(text, types.SimpleNamespace(file=types.SimpleNamespace(src_uri=uri)))


class Links(unittest.TestCase):
    def test_between_pages_and_to_the_web_stay(self):
        text = "[a](gpu.md#build) [b](../testing.md)\n[c](https://example.org/x) [d](#here) ![e](../images/a.svg)"
        self.assertEqual(on_site(text), text)

    def test_to_pages_and_manifests_elsewhere_lead_to_their_place_on_the_site(self):
        self.assertEqual(on_site("[a\nb](../../CONTRIBUTING.md#rules) [c](../../examples/mnist-mlp.yaml)"),
                         "[a\nb](../repository/CONTRIBUTING.md#rules) [c](../repository/examples/mnist-mlp.yaml)")
        self.assertEqual(on_site("[a](docs/testing.md)", "repository/README.md"), "[a](../testing.md)")
        self.assertEqual(list(pages.links_of("[a](../x.md)\n```\n[b](c)\n```\n[d](#e)", "docs/a.md")), ["x.md"])

    def test_to_sources_and_folders_show_the_path(self):
        self.assertEqual(on_site("[device.h](../../trainer/compute/device.h#x) and [examples](../../examples)"),
                         "`trainer/compute/device.h` and `examples`")
        self.assertEqual(on_site("[the tests](../../tests/e2e)"), "the tests (`tests/e2e`)")

    def test_in_code_stay(self):
        text = "```\n[a](../../examples)\n```"
        self.assertEqual(on_site(text), text)


class Lists(unittest.TestCase):
    def test_and_tables_get_an_empty_line_before_them(self):
        self.assertEqual(on_site("Two:\n- a\n  b\n- c\n\nText\n| a |\n|---|"),
                         "Two:\n\n- a\n    b\n- c\n\nText\n\n| a |\n|---|")

    def test_hold_their_code(self):
        self.assertEqual(on_site("1. a:\n   ```sh\n   b\n     c\n   ```\n   d"),
                         "1. a:\n    ```sh\n    b\n      c\n    ```\n    d")

    def test_end_with_the_next_paragraph(self):
        self.assertEqual(on_site("- a\n\n  b\n\nc\n  d"), "- a\n\n    b\n\nc\n  d")


if __name__ == "__main__":
    unittest.main()
