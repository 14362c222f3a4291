// RDMA devices in memory, for tests: what libibverbs and a card would do, at once, in the thread that asks.
// They check what a card would only punish: queues that overflow, receives that are missing, keys and
// addresses of no registration. And they break where a test says so.
//
//   fake_objects.h   what libibverbs' handles are here        fake_traffic.cc   what becomes of requests
//   fake_verbs.cc    functions in place of libibverbs'        fake_fabric.cc    what tests do to it
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/verbs/device.h"

namespace tutti::test {

/// Functions in place of libibverbs'.
const Ibverbs& fakeVerbs();

/// A device of one port. What a test sets of it directly, and sees, while no other thread uses it.
struct FakeDevice : ibv_device, std::enable_shared_from_this<FakeDevice> {
  static constexpr ibv_mtu kMtu = IBV_MTU_4096;

  std::shared_ptr<VerbsDevice> open() { return std::make_shared<VerbsDevice>(fakeVerbs(), this); }
  /// As it is found where it is up.
  VerbsPort port(int number = 1);

  // What it takes, and is.
  bool is_ethernet = true;
  std::uint16_t lid = 17;
  std::vector<Gid> gids = {};       ///< its table: each has its index
  std::size_t most_regions = 1000;  ///< then registering fails with ENOMEM
  int dma_buf_error = EOPNOTSUPP;   ///< what registering by a descriptor gives; 0: a region
  int address_error = 0;            ///< likewise by an address
  bool holds_reads = false;         ///< RDMA reads come back by Fabric::returnReads(), else at once
  ibv_wc_status read_status = IBV_WC_SUCCESS;  ///< of those that are back at once

  // What was done with it.
  struct Change {
    ibv_qp_attr attributes;
    int mask;
  };
  std::vector<Change> changes = {};                 ///< of queue pairs, in order
  std::map<const void*, std::size_t> regions = {};  ///< registered now, by address
  int registered = 0;                               ///< ever
  int writes = 0;                                   ///< requests, also of credits
  int reads = 0;                                    ///< that were begun

  // Fabric's.
  bool is_up = true;
  bool loses_next = false;
  bool is_unacknowledged = false;
};

/// One per process. Thread-safe; what `breakAt` calls may call all of it.
class Fabric {
 public:
  static Fabric& the();
  /// The same, where all is well and nothing was written yet. No device may be open.
  static Fabric& fresh();

  FakeDevice& add(const std::string& device);
  FakeDevice& operator[](const std::string& device);
  /// The port, up, of a device of its own.
  VerbsPort makePort(const std::string& device, const std::string& ipv4, bool is_ethernet = true);
  /// What devices write there, once it is registered, arrives when they are made to read it, or end the queue
  /// pair: as late as PCIe allows.
  void addGpuMemory(std::span<const std::byte> memory);

  /// `action` is done when so many writes were made in all; the write itself comes after it.
  void breakAt(std::uint64_t writes, std::function<void()> action);

  // How things break. Devices by name.
  /// Its next write does not arrive, nor what follows on that queue pair, and nothing tells of it.
  void loseNext(const std::string& device);
  /// What it sends arrives, the acknowledgement does not, from now on.
  void setUnacknowledged(const std::string& device, bool is_unacknowledged);
  void setPort(const std::string& device, bool is_up);  ///< with the event
  /// With the event, each. What goes by an address that is not there is lost.
  void addAddress(const std::string& device, int index, const std::string& ipv4);
  void removeAddresses(const std::string& device);
  void setLid(const std::string& device, std::uint16_t lid);  ///< likewise
  void fail(const std::string& device, ibv_event_type event);
  /// All its queue pairs, with that status; what is posted afterwards is flushed.
  void failPairs(const std::string& device, ibv_wc_status status, bool with_event = false);
  /// The next so many attempts to make a queue pair, or to connect one, fail so.
  void refusePairs(int times, int error);
  void refuseConnections(int times, int error);
  /// Done in each attempt to connect a queue pair, in the thread that makes it.
  void onConnect(std::function<void()> action);

  // What happens by itself elsewhere.
  /// Reads that were held come back.
  void returnReads(ibv_wc_status status = IBV_WC_SUCCESS);
  /// A write with this immediate has come to the queue pair that was made last.
  void receive(std::uint32_t immediate);

  /// Queue pairs that are there now.
  std::size_t openPairs() const;
  /// With any device.
  bool isRegistered(const void* address) const;
  /// What a card would have punished, in words.
  std::vector<std::string> violations() const;
};

}  // namespace tutti::test
