#include "tools/train/gather.h"

#include <cstring>

namespace tutti::train {

std::vector<std::byte> gatherBytes(Comm& comm, std::span<const std::byte> bytes) {
  const auto nranks = static_cast<std::size_t>(comm.size());
  const std::size_t count = bytes.size() / sizeof(std::int32_t);
  std::vector<std::int32_t> own(count);
  std::memcpy(own.data(), bytes.data(), bytes.size());
  std::vector<std::int32_t> all(nranks * count);
  comm.allGather(own.data(), all.data(), count);
  std::vector<std::byte> result(nranks * bytes.size());
  std::memcpy(result.data(), all.data(), result.size());
  return result;
}

std::vector<std::uint64_t> gatherWords(Comm& comm, std::span<const std::uint64_t> words) {
  const std::vector<std::byte> bytes = gatherBytes(comm, std::as_bytes(words));
  std::vector<std::uint64_t> result(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

}  // namespace tutti::train
