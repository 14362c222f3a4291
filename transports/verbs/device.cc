#include "transports/verbs/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "transports/verbs/path_rules.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Entries of a port's table that are looked at: those that letters have room for come first.
constexpr int kMostEntries = 256;

void makeNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// What the kernel says of an entry; nothing where it is empty.
std::optional<GidType> typeOf(const VerbsDevice& device, int port, int index) {
  std::ifstream file(fmt::format("{}/ports/{}/gid_attrs/types/{}", device.folder(), port, index));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  return text.find("v2") != std::string::npos ? GidType::roce_v2 : GidType::roce_v1;
}

std::vector<Gid> readGids(const VerbsDevice& device, int port, int entries, bool is_ethernet) {
  std::vector<Gid> gids;
  for (int index = 0; index < std::min(entries, kMostEntries); ++index) {
    ibv_gid raw{};
    if (device.verbs().query_gid(device.context(), static_cast<std::uint8_t>(port), index, &raw) != 0)
      continue;
    Gid gid{.index = static_cast<std::uint16_t>(index)};
    std::memcpy(gid.bytes.data(), raw.raw, gid.bytes.size());
    if (std::ranges::all_of(gid.bytes, [](std::uint8_t byte) { return byte == 0; })) continue;
    gid.type = GidType::infiniband;
    if (is_ethernet) {
      const auto type = typeOf(device, port, index);
      if (!type) continue;
      gid.type = *type;
    }
    gids.push_back(gid);
  }
  return gids;
}

/// The key of NCCL_IB_PKEY; nothing where the port has none there.
std::optional<std::uint16_t> readPartition(const VerbsPort& port, const RdmaSettings& settings, int entries) {
  __be16 key = 0;
  const bool is_there =
      settings.pkey_index < entries &&
      port.device->verbs().query_pkey(port.device->context(), port.number, settings.pkey_index, &key) == 0;
  if (!is_there || (ntohs(key) & 0x7fff) == 0) return std::nullopt;
  return ntohs(key);
}

std::string listOf(std::span<const Gid> gids) {
  std::vector<std::string> texts;
  for (const Gid& gid : gids) texts.push_back(toText(gid));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Those of `some` that `others` has not.
std::vector<Gid> without(std::span<const Gid> some, std::span<const Gid> others) {
  std::vector<Gid> rest;
  std::ranges::copy_if(some, std::back_inserter(rest),
                       [&](const Gid& gid) { return std::ranges::find(others, gid) == others.end(); });
  return rest;
}

}  // namespace

std::string readPort(VerbsPort& port, const RdmaSettings& settings) {
  ibv_port_attr attributes{};
  const Ibverbs& verbs = port.device->verbs();
  const std::string name = port.name();
  const int error = verbs.query_port(port.device->context(), port.number, &attributes);
  if (error != 0) return fmt::format("{}: {}", name, std::strerror(error));
  if (attributes.state != IBV_PORT_ACTIVE) {
    return fmt::format("{} is not active (cable, switch, or `ip link set ... up`)", name);
  }
  port.mtu = attributes.active_mtu;
  port.is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.lid = attributes.lid;
  port.wants_global_header = (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  const auto partition = readPartition(port, settings, attributes.pkey_tbl_len);
  if (!partition) {
    return fmt::format("{} has no partition key at index {} (NCCL_IB_PKEY); its table has {} entries", name,
                       settings.pkey_index, attributes.pkey_tbl_len);
  }
  port.partition = *partition;
  const auto all = readGids(*port.device, port.number, attributes.gid_tbl_len, port.is_ethernet);
  if (all.empty()) return fmt::format("{} has no GID (has its interface an address?)", name);
  port.gids = allowedGids(all, gidRulesOf(settings));
  if (!port.gids.empty()) return "";
  return fmt::format(
      "none of the GIDs of {} is allowed (NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE): {}",
      name, listOf(all));
}

std::string rereadPort(VerbsPort& port, const RdmaSettings& settings) {
  const VerbsPort before = port;
  ibv_port_attr attributes{};
  if (port.device->verbs().query_port(port.device->context(), port.number, &attributes) != 0) return "";
  port.lid = attributes.lid;
  port.partition = readPartition(port, settings, attributes.pkey_tbl_len).value_or(port.partition);
  port.gids = allowedGids(readGids(*port.device, port.number, attributes.gid_tbl_len, port.is_ethernet),
                          gidRulesOf(settings));
  std::vector<std::string> changes;
  const auto gone = without(before.gids, port.gids);
  const auto added = without(port.gids, before.gids);
  if (!gone.empty()) changes.push_back("GID " + listOf(gone) + " is gone");
  if (!added.empty()) changes.push_back("GID " + listOf(added) + " is new");
  if (port.lid != before.lid) changes.push_back(fmt::format("LID {} instead of {}", port.lid, before.lid));
  if (port.partition != before.partition)
    changes.push_back(
        fmt::format("partition key {:#06x} instead of {:#06x}", port.partition, before.partition));
  return fmt::format("{}", fmt::join(changes, "; "));
}

VerbsDevice::VerbsDevice(const Ibverbs& verbs, ibv_device* device)
    : verbs_(verbs), name_(verbs.get_device_name(device)) {
  const auto require = [this](const void* made, const char* what) {
    if (made != nullptr) return;
    const int error = errno;
    close();
    throw Error(ncclSystemError,
                fmt::format("RDMA device {}: {}: {} (errno {})", name_, what, std::strerror(error), error));
  };
  context_ = verbs.open_device(device);
  require(context_, "opening it (is /dev/infiniband there, and readable?)");
  domain_ = verbs.alloc_pd(context_);
  require(domain_, "allocating a protection domain");
  channel_ = verbs.create_comp_channel(context_);
  require(channel_, "making a completion channel");
  makeNonBlocking(channel_->fd);
  makeNonBlocking(context_->async_fd);
}

VerbsDevice::~VerbsDevice() { close(); }

void VerbsDevice::close() {
  if (channel_ != nullptr) verbs_.destroy_comp_channel(channel_);
  if (domain_ != nullptr) verbs_.dealloc_pd(domain_);
  if (context_ != nullptr) verbs_.close_device(context_);
}

std::string VerbsPort::whyNot() const {
  ibv_port_attr attributes{};
  const bool is_up = device->verbs().query_port(device->context(), number, &attributes) == 0 &&
                     attributes.state == IBV_PORT_ACTIVE;
  if (!is_up) return name() + " is not up";
  return gids.empty() ? name() + " has no GID any more that may be used" : "";
}

std::string VerbsPort::name() const { return fmt::format("{}:{}", device->name(), number); }

namespace {

struct Findings {
  std::vector<VerbsPort> ports;
  std::vector<std::string> problems;
  std::vector<std::string> left_out;  ///< by NCCL_IB_HCA
};

/// Throws Error.
void readPorts(const Ibverbs& verbs, ibv_device* listed, const RdmaSettings& settings, const HcaRule& rule,
               Findings& findings) {
  const std::string name = verbs.get_device_name(listed);
  std::shared_ptr<VerbsDevice> device;
  ibv_device_attr attributes{};
  if (rule.allowsSomeOf(name)) {
    device = std::make_shared<VerbsDevice>(verbs, listed);
    verbs.query_device(device->context(), &attributes);
  }
  for (int port = 1; port <= std::max(1, int{attributes.phys_port_cnt}); ++port) {
    if (!rule.allows(name, port)) {
      findings.left_out.push_back(fmt::format("{}:{} is left out by NCCL_IB_HCA", name, port));
      continue;
    }
    VerbsPort read{.device = device, .number = static_cast<std::uint8_t>(port)};
    const std::string problem = readPort(read, settings);
    if (problem.empty()) {
      findings.ports.push_back(std::move(read));
    } else {
      findings.problems.push_back(problem);
    }
  }
}

}  // namespace

VerbsPorts findVerbsPorts(const RdmaSettings& settings) {
  VerbsPorts found;
  const HcaRule rule(settings.hca);
  // Without a device libibverbs is not loaded: it is several libraries, which stay.
  std::error_code no_folder;
  if (std::filesystem::is_empty("/sys/class/infiniband", no_folder) || no_folder) {
    found.why_not = "this host has no RDMA device (/sys/class/infiniband)";
    return found;
  }
  const Ibverbs* const verbs = ibverbs(&found.why_not);
  if (verbs == nullptr) return found;
  int count = 0;
  ibv_device** const devices = verbs->get_device_list(&count);
  if (devices == nullptr || count == 0) {
    found.why_not = "this host has no RDMA device (/sys/class/infiniband)";
    if (devices != nullptr) verbs->free_device_list(devices);
    return found;
  }
  Findings findings;
  for (int i = 0; i < count; ++i) {
    try {
      readPorts(*verbs, devices[i], settings, rule, findings);
    } catch (const Error& error) {
      findings.problems.emplace_back(error.what());
    }
  }
  verbs->free_device_list(devices);
  found.ports = std::move(findings.ports);
  if (!found.ports.empty()) return found;
  // Who left ports out knows it, and asks for the others.
  found.why_not = !findings.problems.empty()
                      ? fmt::format("{}", fmt::join(findings.problems, "; "))
                      : fmt::format("{}=\"{}\", which fits no other; name one of these in it, or unset it",
                                    fmt::join(findings.left_out, "; "), settings.hca);
  return found;
}

}  // namespace tutti
