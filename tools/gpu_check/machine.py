"""What GPUs are here and how fast they are clocked: NVIDIA's management library, loaded where it is, else nvidia-smi."""

import ctypes
import os
import platform
import shutil
import statistics
import subprocess
import threading

GRAPHICS_CLOCK, SM_CLOCK, MEMORY_CLOCK = 0, 1, 2
QUERY = "name,driver_version,clocks.max.sm,clocks.max.memory,power.limit,ecc.mode.current,pci.bus_id"


class Nvml:
    """None of its calls is needed for a report: what fails is left out."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        if self.library.nvmlInit_v2() != 0:
            raise OSError("nvmlInit failed")
        count = ctypes.c_uint()
        self.library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        self.devices = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            if self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
                self.devices.append(handle)

    def text(self, function, *arguments):
        buffer = ctypes.create_string_buffer(96)
        failed = getattr(self.library, function)(*arguments, buffer, ctypes.c_uint(len(buffer)))
        return None if failed else buffer.value.decode(errors="replace")

    def number(self, function, *arguments):
        value = ctypes.c_uint()
        return None if getattr(self.library, function)(*arguments, ctypes.byref(value)) else value.value

    def describe(self, device):
        milliwatts = self.number("nvmlDeviceGetPowerManagementLimit", device)
        return {"name": self.text("nvmlDeviceGetName", device),
                "uuid": self.text("nvmlDeviceGetUUID", device),
                "max_sm_mhz": self.number("nvmlDeviceGetMaxClockInfo", device, SM_CLOCK),
                "max_memory_mhz": self.number("nvmlDeviceGetMaxClockInfo", device, MEMORY_CLOCK),
                "power_limit_w": None if milliwatts is None else milliwatts / 1000}

    def now(self, device):
        return {"sm_mhz": self.number("nvmlDeviceGetClockInfo", device, SM_CLOCK),
                "memory_mhz": self.number("nvmlDeviceGetClockInfo", device, MEMORY_CLOCK),
                "temperature_c": self.number("nvmlDeviceGetTemperature", device, 0)}


def openNvml():
    """Or why not."""
    try:
        return Nvml(), ""
    except (OSError, AttributeError) as error:
        return None, f"NVML: {error}"


def askSmi():
    if shutil.which("nvidia-smi") is None:
        return None
    try:
        answer = subprocess.run(["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv"], capture_output=True, text=True,
                                timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip().splitlines() if answer.returncode == 0 else None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def describe(emulated):
    """The machine, for the report."""
    machine = {"host": platform.node(), "system": platform.platform(), "processor": processor(), "emulated": emulated}
    if emulated:
        return machine
    nvml, why = openNvml()
    if nvml is None:
        return {**machine, "nvml": why, "nvidia_smi": askSmi() or "not there either"}
    return {**machine, "driver": nvml.text("nvmlSystemGetDriverVersion"),
            "devices": [nvml.describe(device) for device in nvml.devices]}


class ClockWatch:
    """Looks at the clocks of the first GPU every half second, while something is measured."""

    def __init__(self, emulated):
        self.nvml = None if emulated else openNvml()[0]
        self.samples = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        while self.nvml is not None and self.nvml.devices and not self.ended.wait(0.5):
            self.samples.append(self.nvml.now(self.nvml.devices[0]))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join(timeout=5)

    def summary(self):
        """Least, median and greatest of each, or None."""
        result = {}
        for name in self.samples[0] if self.samples else ():
            values = sorted(sample[name] for sample in self.samples if sample[name] is not None)
            if values:
                result[name] = {"least": values[0], "median": statistics.median(values), "greatest": values[-1]}
        return result or None
