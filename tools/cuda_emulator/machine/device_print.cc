#include "tools/cuda_emulator/machine/device_print.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace tutti::emulator {
namespace {

/// Reads packed arguments in turn.
class Arguments {
 public:
  explicit Arguments(const unsigned char* at) : at_(at) {}

  template <class T>
  T next() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    std::memcpy(&value, at_ + offset_, sizeof value);
    offset_ += sizeof value;
    ++count_;
    return value;
  }
  unsigned count() const { return count_; }

 private:
  const unsigned char* at_;
  std::size_t offset_ = 0;
  unsigned count_ = 0;
};

template <class T>
std::string formatted(const std::string& specification, T value) {
  char buffer[512];
  const int length = std::snprintf(buffer, sizeof buffer, specification.c_str(), value);
  return length < 0 ? std::string() : std::string(buffer);
}

/// One conversion, "%-5.2lf" say; a star becomes the argument it stands for.
std::string convert(std::string specification, Arguments& arguments) {
  for (std::size_t star = specification.find('*'); star != std::string::npos;
       star = specification.find('*')) {
    specification.replace(star, 1, std::to_string(arguments.next<int>()));
  }
  const char kind = specification.back();
  const bool wide = specification.find_first_of("ljzt") != std::string::npos;
  if (std::string_view("fFeEgGaA").find(kind) != std::string_view::npos) {
    return formatted(specification, arguments.next<double>());
  }
  if (kind == 's') return formatted(specification, arguments.next<const char*>());
  if (kind == 'p') return formatted(specification, arguments.next<const void*>());
  if (wide) return formatted(specification, arguments.next<long long>());
  return formatted(specification, arguments.next<int>());
}

}  // namespace

unsigned devicePrint(const char* format, const unsigned char* packed) {
  Arguments arguments(packed);
  std::string text;
  std::string_view left = format;
  while (!left.empty()) {
    const std::size_t percent = left.find('%');
    text += left.substr(0, percent);
    if (percent == std::string_view::npos) break;
    left.remove_prefix(percent);
    const std::size_t end = left.find_first_of("%diouxXeEfFgGaAcspn", 1);
    if (end == std::string_view::npos) break;
    const std::string specification(left.substr(0, end + 1));
    text += specification.back() == '%' ? "%" : convert(specification, arguments);
    left.remove_prefix(end + 1);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return arguments.count();
}

}  // namespace tutti::emulator
