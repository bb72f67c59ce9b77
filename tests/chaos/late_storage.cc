// Mounts a folder as a host sees it whose NFS client has actimeo=SECONDS: for so long it believes
// what it knows, and asks nobody. Two mounts of one folder are two such hosts.
//   late_storage FOLDER MOUNTPOINT SECONDS
// Known are names, also that one is not there, and attributes. As with NFS, a client asks for a
// file's attributes when it is opened, and for a folder's names when the folder is opened or when
// the client itself has changed it. What a file holds is never cached. Unlike NFS, files are known
// by their paths: one that is renamed by another host is gone. It is FUSE, without the kernel's
// caches, and runs until the folder is unmounted.

#define FUSE_USE_VERSION 31

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

struct Attributes {
  int error = 0;
  struct stat found {};
};

// The attributes by path, each believed for a time once the client has asked for it.
class Beliefs {
 public:
  // Returns what is believed of `path`, else what ask() answers.
  template <class Ask>
  Attributes get(const std::string& path, Ask ask) {
    const std::lock_guard lock(mutex_);
    const auto found = believed_.find(path);
    if (found != believed_.end() && Clock::now() < found->second.until)
      return found->second.attributes;
    return (believed_[path] = {ask(), Clock::now() + duration}).attributes;
  }
  void forget(const std::string& path) {
    const std::lock_guard lock(mutex_);
    believed_.erase(path);
  }
  // Forgets what is directly in the folder and no longer right.
  template <class IsRight>
  void check_in(const std::string& folder, IsRight is_right) {
    const std::lock_guard lock(mutex_);
    const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
    std::erase_if(believed_, [&](const auto& entry) {
      const std::string& path = entry.first;
      const bool is_in = path.starts_with(prefix) && path.find('/', prefix.size()) == path.npos;
      return is_in && !is_right(path, entry.second.attributes);
    });
  }
  void forget_below(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    std::erase_if(believed_,
                  [&](const auto& entry) { return entry.first.starts_with(folder + "/"); });
  }

  Clock::duration duration{};

 private:
  struct Entry {
    Attributes attributes;
    Clock::time_point until;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> believed_;
};

std::string folder;
Beliefs attributes;

std::string real(const char* path) {
  return folder + path;
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

int answer(ssize_t result) {
  return result < 0 ? -errno : static_cast<int>(result);
}

Attributes ask_for_attributes(const std::string& path) {
  Attributes now;
  if (lstat(real(path.c_str()).c_str(), &now.found) != 0) now.error = errno;
  return now;
}

// Asks for the names in a folder. Attributes of those that are still there are believed on.
void ask_again(const std::string& path) {
  attributes.forget(path);
  attributes.check_in(path, [](const std::string& child, const Attributes& known) {
    const Attributes now = ask_for_attributes(child);
    return now.error == known.error && now.found.st_ino == known.found.st_ino;
  });
}

// This mount has changed what is at `path`.
int changed(const char* path, int result) {
  const int error = answer(result);
  attributes.forget(path);
  ask_again(parent_of(path));
  return error;
}

int get_attributes(const char* path, struct stat* found, fuse_file_info*) {
  const Attributes known = attributes.get(path, [&] { return ask_for_attributes(path); });
  *found = known.found;
  return -known.error;
}

// The kernel has asked for the folder's attributes before: it opens none that is believed missing.
int open_folder(const char* path, fuse_file_info*) {
  ask_again(path);
  return -ask_for_attributes(path).error;
}

int open_file(const char* path, fuse_file_info* info) {
  const Attributes known = attributes.get(path, [&] { return ask_for_attributes(path); });
  if (known.error == ENOENT) return -ENOENT;
  attributes.forget(path);
  info->fh = static_cast<uint64_t>(open(real(path).c_str(), info->flags & ~O_DIRECT));
  return answer(static_cast<int>(info->fh) < 0 ? -1 : 0);
}

int create_file(const char* path, mode_t mode, fuse_file_info* info) {
  info->fh =
      static_cast<uint64_t>(open(real(path).c_str(), (info->flags & ~O_DIRECT) | O_CREAT, mode));
  return changed(path, static_cast<int>(info->fh) < 0 ? -1 : 0);
}

int list(const char* path, void* into, fuse_fill_dir_t fill, off_t, fuse_file_info*,
         fuse_readdir_flags) {
  DIR* const opened = opendir(real(path).c_str());
  if (opened == nullptr) return -errno;
  while (const dirent* entry = readdir(opened)) fill(into, entry->d_name, nullptr, 0, {});
  closedir(opened);
  return 0;
}

int move(const char* from, const char* to, unsigned flags) {
  if (flags != 0) return -EINVAL;
  const int result = changed(from, rename(real(from).c_str(), real(to).c_str()));
  for (const char* path : {from, to}) attributes.forget_below(path);
  changed(to, 0);
  return result;
}

int file_of(const fuse_file_info* info) {
  return static_cast<int>(info->fh);
}

fuse_operations operations() {
  fuse_operations does{};
  does.init = [](fuse_conn_info*, fuse_config* config) -> void* {
    config->use_ino = 1;
    config->entry_timeout = config->negative_timeout = config->attr_timeout = 0;
    config->direct_io = 1;
    return nullptr;
  };
  does.getattr = get_attributes;
  does.opendir = open_folder;
  does.readdir = list;
  does.open = open_file;
  does.create = create_file;
  does.rename = move;
  does.mkdir = [](const char* path, mode_t mode) {
    return changed(path, mkdir(real(path).c_str(), mode));
  };
  does.unlink = [](const char* path) { return changed(path, unlink(real(path).c_str())); };
  does.rmdir = [](const char* path) { return changed(path, rmdir(real(path).c_str())); };
  does.link = [](const char* from, const char* to) {
    return changed(to, link(real(from).c_str(), real(to).c_str()));
  };
  does.chmod = [](const char* path, mode_t mode, fuse_file_info*) {
    return changed(path, chmod(real(path).c_str(), mode));
  };
  does.truncate = [](const char* path, off_t size, fuse_file_info*) {
    return changed(path, truncate(real(path).c_str(), size));
  };
  does.utimens = [](const char* path, const timespec times[2], fuse_file_info*) {
    return changed(path, utimensat(AT_FDCWD, real(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
  };
  does.read = [](const char*, char* into, size_t size, off_t at, fuse_file_info* info) {
    return answer(pread(file_of(info), into, size, at));
  };
  does.write = [](const char* path, const char* from, size_t size, off_t at, fuse_file_info* info) {
    attributes.forget(path);
    return answer(pwrite(file_of(info), from, size, at));
  };
  does.release = [](const char*, fuse_file_info* info) { return answer(close(file_of(info))); };
  does.fsync = [](const char*, int, fuse_file_info* info) { return answer(fsync(file_of(info))); };
  does.fsyncdir = [](const char*, int, fuse_file_info*) { return 0; };
  does.flock = [](const char*, fuse_file_info* info, int operation) {
    return answer(flock(file_of(info), operation));
  };
  does.statfs = [](const char* path, struct statvfs* found) {
    return answer(statvfs(real(path).c_str(), found));
  };
  return does;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: late_storage FOLDER MOUNTPOINT SECONDS\n");
    return 64;
  }
  folder = argv[1];
  attributes.duration =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(atof(argv[3])));
  const fuse_operations does = operations();
  const char* arguments[] = {argv[0], "-f", "-o", "default_permissions", argv[2]};
  return fuse_main(5, const_cast<char**>(arguments), &does, nullptr);
}
