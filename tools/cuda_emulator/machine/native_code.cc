#include "tools/cuda_emulator/machine/native_code.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/core/unique_fd.h"
#include "tools/cuda_emulator/machine/compiler.h"
#include "tutti/error.h"

namespace tutti::emulator {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// For a user without a home: what lies there is executed, so nobody else may have put it there.
fs::path temporaryFolder() {
  const std::string temporary = environment("TMPDIR");
  fs::path folder =
      fs::path(temporary.empty() ? "/tmp" : temporary) / fmt::format("tutti-emulator-{}", geteuid());
  struct stat found {};
  const bool is_there = mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
  if (!is_there || lstat(folder.c_str(), &found) != 0) {
    throw Error(ncclSystemError,
                fmt::format("no place to keep translated kernels: HOME is not set, and {}: {}; set "
                            "TUTTI_EMULATOR_CACHE to a folder",
                            folder.string(), std::strerror(errno)));
  }
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0) {
    throw Error(
        ncclSystemError,
        fmt::format("no place to keep translated kernels: HOME is not set, and {} is no folder that only "
                    "this user (uid {}) can reach; remove it, or set TUTTI_EMULATOR_CACHE to a folder",
                    folder.string(), geteuid()));
  }
  return folder;
}

fs::path cacheFolder() {
  fs::path folder;
  if (const std::string own = environment("TUTTI_EMULATOR_CACHE"); !own.empty()) {
    folder = own;
  } else if (const std::string caches = environment("XDG_CACHE_HOME"); !caches.empty()) {
    folder = fs::path(caches) / "tutti" / "emulator";
  } else if (const std::string home = environment("HOME"); !home.empty()) {
    folder = fs::path(home) / ".cache" / "tutti" / "emulator";
  } else {
    folder = temporaryFolder();
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(ncclSystemError, fmt::format("cannot make the folder {} for translated kernels: {}; set "
                                             "TUTTI_EMULATOR_CACHE to another one",
                                             folder.string(), error.message()));
  }
  return folder;
}

std::string hashOf(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// One process at a time, as long as the object lives.
class FileLock {
 public:
  explicit FileLock(const fs::path& path) : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_.get() < 0) {
      throw Error(ncclSystemError, fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
    }
    while (flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) continue;
  }

 private:
  UniqueFd file_;
};

void writeFile(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(ncclSystemError, fmt::format("cannot write {}: no space left?", path.string()));
}

/// A folder that goes with the object.
class Workshop {
 public:
  explicit Workshop(fs::path path) : path_(std::move(path)) { fs::create_directories(path_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Leaves the object at `object`, whole or not at all.
void build(const fs::path& object, const std::string& header, const std::vector<std::string>& units) {
  const Workshop workshop(object.string() + fmt::format(".{}", getpid()));
  writeFile(workshop.path() / "device.h", header);
  std::vector<fs::path> sources;
  for (std::size_t i = 0; i < units.size(); ++i) {
    sources.push_back(workshop.path() / fmt::format("unit_{}.cc", i));
    writeFile(sources.back(), "#include \"device.h\"\n" + units[i]);
  }
  const fs::path made = workshop.path() / "module.so";
  compileShared(sources, made);
  fs::rename(made, object);
}

void* loadObject(const fs::path& object) {
  void* handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw Error(ncclSystemError, fmt::format("cannot load {}: {}", object.string(), dlerror()));
  return handle;
}

/// The segment of a loaded object that may be executed.
NativeCode::Range codeOf(void* handle) {
  link_map* loaded = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &loaded);
  struct Search {
    std::uintptr_t base;
    NativeCode::Range found;
  } search{loaded->l_addr, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (info->dlpi_addr != wanted.base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          wanted.found = {wanted.base + segment.p_vaddr, wanted.base + segment.p_vaddr + segment.p_memsz};
        }
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace

NativeCode::NativeCode(void* handle) : handle_(handle), code_(codeOf(handle)) {}

std::unique_ptr<NativeCode> NativeCode::make(const std::string& key, const std::string& header,
                                             const std::function<std::vector<std::string>()>& units) {
  const fs::path folder = cacheFolder();
  const std::string name = hashOf(hashOf(header) + compilerIdentity() + key);
  const fs::path object = folder / (name + ".so");
  if (!fs::exists(object)) {
    const FileLock lock(folder / (name + ".lock"));
    if (!fs::exists(object)) build(object, header, units());
  }
  return std::unique_ptr<NativeCode>(new NativeCode(loadObject(object)));
}

NativeCode::~NativeCode() { dlclose(handle_); }

void* NativeCode::symbol(const std::string& name) const {
  void* found = dlsym(handle_, name.c_str());
  if (found == nullptr) throw Error(ncclInternalError, fmt::format("no {} in the translated module", name));
  return found;
}

}  // namespace tutti::emulator
