// One communication library as the comparison sees it. Each program of the comparison links the same loop
// (loop.h) with one implementation of this class.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tutti::peers {

enum class Kind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kSendRecv, kAllToAll };

/// The element types of the comparison.
enum class Type { kFloat, kBfloat16 };

constexpr std::size_t bytesOf(Type type) { return type == Type::kFloat ? 4 : 2; }

/// One call. Reductions are sums; roots are rank 0; send-receive goes to the next rank and comes from the
/// previous one.
struct Operation {
  Kind kind;
  Type type;
  std::size_t count;  ///< elements per rank; per block where the collective deals out blocks
};

/// The library, joined by this rank. Errors end the process with a message.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  virtual std::string version() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Memory at least 64-byte aligned that lives as long as this object: ordinary memory, or what the library
  /// offers as best for its calls. Collective.
  virtual std::byte* allocate(std::size_t bytes, bool registered) = 0;

  /// In place where both are equal (all-reduce, broadcast). Returns when the result is there.
  virtual void call(const Operation& operation, const std::byte* send, std::byte* recv) = 0;

  /// The largest `value` of all ranks; also a barrier.
  virtual double largest(double value) = 0;
};

/// Joins the ranks that the library's own launcher started.
std::unique_ptr<Peer> join(int* argc, char*** argv);

/// Ordinary memory, page-aligned, freed at the end of the process.
std::byte* ordinaryMemory(std::size_t bytes);

}  // namespace tutti::peers
