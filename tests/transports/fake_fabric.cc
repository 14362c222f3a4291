// What tests do to invented devices.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "tests/harness/scratch_directory.h"
#include "tests/transports/fake_objects.h"

namespace tutti::test {
namespace {

/// What the system shows of every device: all GIDs of Ethernet are RoCE v2's.
const std::string& systemFolder() {
  static const ScratchDirectory folder;
  const std::string types = folder.path() + "/ports/1/gid_attrs/types";
  if (std::filesystem::create_directories(types)) {
    for (int index = 0; index < 16; ++index)
      std::ofstream(types + "/" + std::to_string(index)) << "RoCE v2\n";
  }
  return folder.path();
}

void tellAll(const std::string& device, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  for (FakeContext* context : state().contexts) {
    if (device == context->device->name) context->events.push(event);
  }
}

void addTo(FakeDevice& device, int index, const std::string& ipv4) {
  Gid gid{.index = static_cast<std::uint16_t>(index)};
  gid.type = device.is_ethernet ? GidType::roce_v2 : GidType::infiniband;
  const std::string text = fmt::format("{}{}", device.is_ethernet ? "::ffff:" : "fe80::", ipv4);
  if (::inet_pton(AF_INET6, text.c_str(), gid.bytes.data()) != 1) throw std::invalid_argument(text);
  device.gids.push_back(gid);
}

}  // namespace

State& state() {
  static State the_state;
  return the_state;
}

VerbsPort FakeDevice::port(int number) {
  VerbsPort found{.device = open(), .number = static_cast<std::uint8_t>(number)};
  readPort(found, {});
  return found;
}

Fabric& Fabric::the() {
  static Fabric fabric;
  return fabric;
}

Fabric& Fabric::fresh() {
  const std::lock_guard lock(state().mutex);
  State& s = state();
  s.devices.clear();
  s.gpu_memory.clear();
  s.breaks.clear();
  s.violations.clear();
  s.writes = 0;
  s.refused_pairs = s.refused_connections = 0;
  s.on_connect = {};
  return the();
}

FakeDevice& Fabric::add(const std::string& device) {
  const std::lock_guard lock(state().mutex);
  auto& made = state().devices[device];
  made = std::make_shared<FakeDevice>();
  device.copy(made->name, sizeof(made->name) - 1);
  systemFolder().copy(made->ibdev_path, sizeof(made->ibdev_path) - 1);
  return *made;
}

FakeDevice& Fabric::operator[](const std::string& device) {
  const std::lock_guard lock(state().mutex);
  return *state().devices.at(device);
}

VerbsPort Fabric::makePort(const std::string& device, const std::string& ipv4, bool is_ethernet) {
  FakeDevice& made = add(device);
  made.is_ethernet = is_ethernet;
  addTo(made, 1, ipv4);
  return made.port();
}

void Fabric::addGpuMemory(std::span<const std::byte> memory) {
  const std::lock_guard lock(state().mutex);
  state().gpu_memory.push_back(memory);
}

void Fabric::breakAt(std::uint64_t writes, std::function<void()> action) {
  const std::lock_guard lock(state().mutex);
  state().breaks.emplace(writes, std::move(action));
}

void Fabric::loseNext(const std::string& device) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->loses_next = true;
}

void Fabric::setUnacknowledged(const std::string& device, bool is_unacknowledged) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->is_unacknowledged = is_unacknowledged;
}

void Fabric::setPort(const std::string& device, bool is_up) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->is_up = is_up;
  tellAll(device, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void Fabric::addAddress(const std::string& device, int index, const std::string& ipv4) {
  const std::lock_guard lock(state().mutex);
  addTo(*state().devices.at(device), index, ipv4);
  tellAll(device, IBV_EVENT_GID_CHANGE);
}

void Fabric::removeAddresses(const std::string& device) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->gids.clear();
  tellAll(device, IBV_EVENT_GID_CHANGE);
}

void Fabric::setLid(const std::string& device, std::uint16_t lid) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->lid = lid;
  tellAll(device, IBV_EVENT_LID_CHANGE);
}

void Fabric::fail(const std::string& device, ibv_event_type event) {
  const std::lock_guard lock(state().mutex);
  if (event == IBV_EVENT_DEVICE_FATAL) state().devices.at(device)->is_up = false;
  tellAll(device, event);
}

void Fabric::failPairs(const std::string& device, ibv_wc_status status, bool with_event) {
  const std::lock_guard lock(state().mutex);
  for (const auto& [number, pair] : state().pairs) {
    if (device != pair->context->device->name) continue;
    if (with_event) {
      ibv_async_event event{};
      event.event_type = IBV_EVENT_QP_FATAL;
      event.element.qp = pair;
      static_cast<FakeContext*>(pair->context)->events.push(event);
      pair->is_stuck = true;
    } else {
      breakPair(*pair, completionOf(*pair, 0, status, IBV_WC_RDMA_WRITE));
    }
  }
}

void Fabric::refusePairs(int times, int error) {
  const std::lock_guard lock(state().mutex);
  state().refused_pairs = times;
  state().refusal = error;
}

void Fabric::refuseConnections(int times, int error) {
  const std::lock_guard lock(state().mutex);
  state().refused_connections = times;
  state().refusal = error;
}

void Fabric::onConnect(std::function<void()> action) {
  const std::lock_guard lock(state().mutex);
  state().on_connect = std::move(action);
}

void Fabric::returnReads(ibv_wc_status status) {
  const std::lock_guard lock(state().mutex);
  for (const auto& [number, pair] : state().pairs) {
    for (ibv_wc completion : std::exchange(pair->held_reads, {})) {
      if (status == IBV_WC_SUCCESS) landAll(deviceOf(pair->context));
      completion.status = status;
      complete(pair->send_cq, completion);
    }
  }
}

void Fabric::receive(std::uint32_t immediate) {
  const std::lock_guard lock(state().mutex);
  FakePair& pair = *state().pairs.rbegin()->second;
  --pair.posted_receives;
  ibv_wc completion = completionOf(pair, 0, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
  completion.imm_data = htonl(immediate);
  complete(pair.recv_cq, completion);
}

std::size_t Fabric::openPairs() const {
  const std::lock_guard lock(state().mutex);
  return state().pairs.size();
}

bool Fabric::isRegistered(const void* address) const {
  const std::lock_guard lock(state().mutex);
  return std::ranges::any_of(
      state().devices, [address](const auto& device) { return device.second->regions.contains(address); });
}

std::vector<std::string> Fabric::violations() const {
  const std::lock_guard lock(state().mutex);
  return state().violations;
}

}  // namespace tutti::test
