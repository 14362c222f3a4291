#include "transports/verbs/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "transports/verbs/path_rules.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Entries of a port's table that are looked at: those that letters have room for come first.
constexpr int kMostEntries = 256;

void makeNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// What the kernel says of an entry; nothing where it is empty.
std::optional<GidType> typeOf(const std::string& device, int port, int index) {
  std::ifstream file(
      fmt::format("/sys/class/infiniband/{}/ports/{}/gid_attrs/types/{}", device, port, index));
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
      const auto type = typeOf(device.name(), port, index);
      if (!type) continue;
      gid.type = *type;
    }
    gids.push_back(gid);
  }
  return gids;
}

/// What is wrong with a port, or nothing.
std::string addPort(const std::shared_ptr<VerbsDevice>& device, int number, const RdmaSettings& settings,
                    std::vector<VerbsPort>& ports) {
  ibv_port_attr attributes{};
  const auto name = fmt::format("{}:{}", device->name(), number);
  VerbsPort port{.device = device, .number = static_cast<std::uint8_t>(number)};
  const int error = device->verbs().query_port(device->context(), port.number, &attributes);
  if (error != 0) return fmt::format("{}: {}", name, std::strerror(error));
  if (attributes.state != IBV_PORT_ACTIVE) {
    return fmt::format("{} is not active (cable, switch, or `ip link set ... up`)", name);
  }
  port.mtu = attributes.active_mtu;
  port.is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.lid = attributes.lid;
  port.wants_global_header = (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  __be16 partition = 0;
  const bool has_partition =
      settings.pkey_index < attributes.pkey_tbl_len &&
      device->verbs().query_pkey(device->context(), port.number, settings.pkey_index, &partition) == 0;
  port.partition = ntohs(partition);
  if (!has_partition || (port.partition & 0x7fff) == 0) {
    return fmt::format("{} has no partition key at index {} (NCCL_IB_PKEY); its table has {} entries", name,
                       settings.pkey_index, attributes.pkey_tbl_len);
  }
  const auto all = readGids(*device, number, attributes.gid_tbl_len, port.is_ethernet);
  if (all.empty()) return fmt::format("{} has no GID (has its interface an address?)", name);
  port.gids = allowedGids(all, gidRulesOf(settings));
  if (port.gids.empty()) {
    std::vector<std::string> texts;
    for (const Gid& gid : all) texts.push_back(toText(gid));
    return fmt::format(
        "none of the GIDs of {} is allowed (NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE): {}",
        name, fmt::join(texts, ", "));
  }
  ports.push_back(std::move(port));
  return "";
}

}  // namespace

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

bool VerbsPort::isActive() const {
  ibv_port_attr attributes{};
  return device->verbs().query_port(device->context(), number, &attributes) == 0 &&
         attributes.state == IBV_PORT_ACTIVE;
}

std::string VerbsPort::name() const { return fmt::format("{}:{}", device->name(), number); }

VerbsPorts findVerbsPorts(const RdmaSettings& settings) {
  VerbsPorts found;
  const HcaRule rule(settings.hca);
  gidRulesOf(settings);  // refused also where there is no device
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
  std::vector<std::string> problems;
  for (int i = 0; i < count; ++i) {
    const std::string name = verbs->get_device_name(devices[i]);
    try {
      std::shared_ptr<VerbsDevice> device;
      ibv_device_attr attributes{};
      if (rule.allowsSomeOf(name)) {
        device = std::make_shared<VerbsDevice>(*verbs, devices[i]);
        verbs->query_device(device->context(), &attributes);
      }
      for (int port = 1; port <= std::max(1, int{attributes.phys_port_cnt}); ++port) {
        const std::string problem = rule.allows(name, port)
                                        ? addPort(device, port, settings, found.ports)
                                        : fmt::format("{}:{} is left out by NCCL_IB_HCA", name, port);
        if (!problem.empty()) problems.push_back(problem);
      }
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  verbs->free_device_list(devices);
  if (found.ports.empty()) found.why_not = fmt::format("{}", fmt::join(problems, "; "));
  return found;
}

}  // namespace tutti
