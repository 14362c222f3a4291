#include "tools/run/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tutti::run {
namespace {

/// A file of which parts are read; a part beyond its end throws std::runtime_error.
class Parts {
 public:
  explicit Parts(const std::string& path) : file_(path, std::ios::binary) {}

  std::string read(std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::uint64_t kMost = 256U << 20;  // a damaged header may say anything
    if (bytes > kMost) throw std::runtime_error("a part is too long");
    std::string part(bytes, '\0');
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    if (!file_.read(part.data(), static_cast<std::streamsize>(bytes)))
      throw std::runtime_error("a part is missing");
    return part;
  }

  template <class T>
  std::vector<T> readAll(std::uint64_t offset, std::uint64_t count) {
    const auto part = read(offset, count * sizeof(T));
    std::vector<T> result(count);
    if (!result.empty()) std::memcpy(result.data(), part.data(), part.size());
    return result;
  }

 private:
  std::ifstream file_;
};

std::string nameAt(const std::string& table, std::uint64_t offset) {
  if (offset >= table.size()) throw std::runtime_error("a name is missing");
  return table.c_str() + offset;
}

void addFolders(const std::string& list, const std::string& origin, std::vector<std::string>& folders) {
  std::istringstream in(list);
  for (std::string folder; std::getline(in, folder, ':');) {
    for (const std::string variable : {"$ORIGIN", "${ORIGIN}"}) {
      if (folder.starts_with(variable)) folder.replace(0, variable.size(), origin);
    }
    folders.push_back(folder);
  }
}

struct Sections {
  Parts& file;
  std::vector<Elf64_Shdr> headers;

  std::string stringsOf(const Elf64_Shdr& section) const {
    const auto& table = headers.at(section.sh_link);
    return file.read(table.sh_offset, table.sh_size);
  }
};

void readDynamic(const Sections& sections, const Elf64_Shdr& section, const std::string& origin,
                 ElfFile& result) {
  const auto names = sections.stringsOf(section);
  for (const auto& entry :
       sections.file.readAll<Elf64_Dyn>(section.sh_offset, section.sh_size / sizeof(Elf64_Dyn))) {
    if (entry.d_tag == DT_NULL) return;
    if (entry.d_tag == DT_NEEDED) result.needed.push_back(nameAt(names, entry.d_un.d_val));
    if (entry.d_tag == DT_RPATH) addFolders(nameAt(names, entry.d_un.d_val), origin, result.rpath);
  }
}

void readSymbols(const Sections& sections, const Elf64_Shdr& section, ElfFile& result) {
  const auto names = sections.stringsOf(section);
  for (const auto& symbol :
       sections.file.readAll<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
    const bool must_be_there = symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL;
    if (must_be_there) result.undefined.push_back(nameAt(names, symbol.st_name));
  }
}

ElfFile readSections(Parts& file, const Elf64_Ehdr& header, const std::string& origin) {
  ElfFile result;
  const Sections sections{file, file.readAll<Elf64_Shdr>(header.e_shoff, header.e_shnum)};
  const auto& name_table = sections.headers.at(header.e_shstrndx);
  const auto names = file.read(name_table.sh_offset, name_table.sh_size);
  for (const auto& section : sections.headers) {
    result.sections.push_back(nameAt(names, section.sh_name));
    if (result.sections.back() == ".interp")
      result.interpreter = nameAt(file.read(section.sh_offset, section.sh_size), 0);
    if (section.sh_type == SHT_DYNAMIC) readDynamic(sections, section, origin, result);
    if (section.sh_type == SHT_DYNSYM) readSymbols(sections, section, result);
  }
  return result;
}

bool holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

bool ElfFile::needs(const std::string& library) const { return holds(needed, library); }
bool ElfFile::lacks(const std::string& symbol) const { return holds(undefined, symbol); }
bool ElfFile::hasSection(const std::string& name) const { return holds(sections, name); }

std::optional<ElfFile> readElf(const std::string& path) {
  try {
    Parts file(path);
    const auto header = file.readAll<Elf64_Ehdr>(0, 1).front();
    const bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                       header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
                       header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum > 0;
    if (!known) return std::nullopt;
    const auto folder = std::filesystem::canonical(path).parent_path().string();
    return readSections(file, header, folder);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace tutti::run
