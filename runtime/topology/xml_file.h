// An XML file as the readers of topology files see it: elements that know their lines, attributes that are
// checked.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Larger files are refused.
inline constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;
/// Elements deeper than this are refused.
inline constexpr int kMostXmlDepth = 64;

/// What is in a file; of one that is too large no more than XmlFile needs to refuse it. Throws FileError.
std::string textOfFile(const std::string& path);

/// What a message shows of a file: no more than fits, and nothing that a terminal obeys.
std::string shown(std::string_view text);

/// All its functions throw FileError, which names the file and the element's line.
class XmlFile {
 public:
  /// `name` is for messages. `text` must outlive this.
  XmlFile(std::string_view text, std::string name);

  /// The only element at the top.
  pugi::xml_node root() const { return root_; }
  const std::string& name() const { return name_; }
  int line(pugi::xml_node element) const;
  [[noreturn]] void fail(pugi::xml_node element, const std::string& reason) const;

  /// Notes what is left out, with its line. Of very many the first are kept and the rest are counted.
  void remark(pugi::xml_node element, const std::string& text);
  void remarkElement(pugi::xml_node element);
  std::vector<std::string> remarks() const;

  /// Remarks attributes that are not among `known`; one given twice fails.
  void expectAttributes(pugi::xml_node element, std::initializer_list<std::string_view> known);

  /// Missing: empty, nullopt or `otherwise`. So is an empty number: files of machines that hide things have
  /// it.
  /// Blanks at both ends do not count.
  static std::string_view text(pugi::xml_node element, const char* attribute);
  std::optional<std::int64_t> integer(pugi::xml_node element, const char* attribute, std::int64_t least,
                                      std::int64_t most) const;
  int integerOr(pugi::xml_node element, const char* attribute, int least, int most, int otherwise) const;
  double number(pugi::xml_node element, const char* attribute, double most) const;
  /// All 64 bits, also in base 16 with "0x".
  std::uint64_t bits(pugi::xml_node element, const char* attribute) const;
  [[noreturn]] void failAttribute(pugi::xml_node element, const char* attribute,
                                  const std::string& expected) const;

 private:
  /// What is shown of attributes goes to terminals and into files: plainText, of all of them, and here only.
  void makePlain();
  int lineAt(std::ptrdiff_t offset) const;

  std::string_view text_;
  std::string name_;
  pugi::xml_document document_;
  pugi::xml_node root_;
  mutable std::vector<std::ptrdiff_t> line_ends_;  ///< filled when first asked for
  std::vector<std::string> remarks_;
  std::size_t more_remarks_ = 0;
};

}  // namespace tutti
