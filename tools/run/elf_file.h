// What an executable says of itself: the libraries it needs, the symbols it lacks, its sections.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tutti::run {

struct ElfFile {
  std::vector<std::string> needed;  ///< DT_NEEDED
  std::vector<std::string>
      rpath;  ///< folders of DT_RPATH, which come before LD_LIBRARY_PATH; $ORIGIN resolved
  std::vector<std::string> undefined;  ///< dynamic symbols that libraries must define
  std::vector<std::string> sections;
  std::string interpreter;  ///< the dynamic linker that starts it; empty for libraries and static programs

  bool needs(const std::string& library) const;
  bool lacks(const std::string& symbol) const;
  bool hasSection(const std::string& name) const;
};

/// Nothing where `path` is no 64-bit ELF file of this machine's byte order, or is damaged: a script, say.
std::optional<ElfFile> readElf(const std::string& path);

}  // namespace tutti::run
