// A libnvidia-ml.so of eight invented GPUs, 0000:11:00.0 to 0000:18:00.0. What they are connected by is
// chosen by TUTTI_FAKE_NVML, which is read anew at every call:
//   switches  twelve links each, to four NVSwitches in turn
//   pairs     four links between GPUs 0 and 1, 2 and 3, ...; the last of each is down. GPU 7 has a fifth, to
//             a device that is not told
//   c2c       ten links to the CPU, one of which is down, of 45 GB/s each
//   broken    NVML does not start
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr unsigned kGpus = 8;
constexpr int kNotSupported = 3;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  unsigned type;
  int result;
  unsigned long long value;
};

bool is(const char* arrangement) {
  const char* chosen = std::getenv("TUTTI_FAKE_NVML");
  return chosen != nullptr && std::string(chosen) == arrangement;
}

unsigned numberOf(void* device) { return static_cast<unsigned>(reinterpret_cast<std::size_t>(device)) - 1; }

int setBus(PciInfo* pci, unsigned bus) {
  std::memset(pci, 0, sizeof(*pci));
  std::snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:00.0", 0U, bus);
  return 0;
}

unsigned linksOf(unsigned gpu) {
  if (is("switches")) return 12;
  return is("pairs") ? (gpu == 7 ? 5 : 4) : 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return is("broken") ? 9 : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Driver Not Loaded"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) { return setBus(pci, 0x11 + numberOf(device)); }
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 8;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "Invented A100");
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* is_up) {
  if (link >= linksOf(numberOf(device))) return 2;
  *is_up = is("pairs") && link == 3 ? 0 : 1;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* pci) {
  const unsigned gpu = numberOf(device);
  if (link == 4 && is("pairs")) return kNotSupported;
  return setBus(pci, is("switches") ? 0x21 + link % 4 : 0x11 + (gpu ^ 1U));
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned link, int* type) {
  *type = is("switches") ? 2 : link == 4 ? 255 : 0;
  return 0;
}
int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    FieldValue& field = values[i];
    field.result = is("c2c") ? 0 : kNotSupported;
    unsigned number = 0;
    if (field.field == 170) number = 10;
    if (field.field == 171) number = field.scope == 3 ? 0 : 1;
    if (field.field == 172) number = 45000;
    std::memcpy(&field.value, &number, sizeof(number));
  }
  return 0;
}

}  // extern "C"
