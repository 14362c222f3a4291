// The style sheet of the pictures: light, and dark where the viewer prefers that.
#pragma once

namespace tutti::topo {

inline constexpr int kRingColours = 8;

/// The first ring colours are near Okabe and Ito's, which colour-blind people tell apart.
inline constexpr const char* kStyle = R"(
svg { --paper: #ffffff; --ink: #1b222c; --soft: #5a6472; --frame: #f5f6f8; --edge: #c3c9d3; --cpu: #dde3ec;
  --cpu-edge: #8993a4; --bridge: #d3e3f6; --gpu: #d5eed3; --nic: #fce2c6; --switch: #c4ebdb;
  --pci: #3f76b5; --nvlink: #3c9440; --c2c: #8a56b8; --socket: #6a7383; --net: #cf7d33;
  --r0: #0072b2; --r1: #d55e00; --r2: #00855f; --r3: #b2568c; --r4: #8f6500; --r5: #3a7fae; --r6: #6a51a3;
  --r7: #6b6b6b; }
@media (prefers-color-scheme: dark) { svg { --paper: #12161c; --ink: #e8ecf2; --soft: #a3adbb; --frame: #1a2028;
  --edge: #3b4452; --cpu: #2a323e; --cpu-edge: #6b7688; --bridge: #1f3956; --gpu: #1f4322; --nic: #54371a;
  --switch: #17493a; --pci: #6fa3dc; --nvlink: #6cc070; --c2c: #b48ad8; --socket: #8f99a8; --net: #e39a55;
  --r0: #4aa8e0; --r1: #f08a3c; --r2: #35c79a; --r3: #e08fbf; --r4: #d9a833; --r5: #86c3ea; --r6: #a996dd;
  --r7: #a8a8a8; } }
text { font: 12px "Helvetica Neue", Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif; fill: var(--ink); }
.small { font-size: 10.5px; fill: var(--soft); }
.strong { font-weight: bold; }
.title { font-size: 17px; font-weight: bold; }
.paper { fill: var(--paper); }
.host { fill: none; stroke: var(--edge); }
.frame { fill: var(--frame); stroke: var(--edge); }
.numa_node { fill: var(--cpu); stroke: var(--cpu-edge); }
.pci_bridge { fill: var(--bridge); stroke: var(--pci); }
.gpu { fill: var(--gpu); stroke: var(--nvlink); stroke-width: 1.4; }
.nic, .port { fill: var(--nic); stroke: var(--net); }
.nvswitch { fill: var(--switch); stroke: var(--nvlink); }
.wire { fill: none; }
.wire.pci { stroke: var(--pci); } .wire.nvlink { stroke: var(--nvlink); } .wire.c2c { stroke: var(--c2c); }
.wire.socket { stroke: var(--socket); } .wire.net { stroke: var(--net); }
.bar { fill: var(--socket); }
.on-bar { fill: var(--paper); font-size: 11px; font-weight: bold; }
.number { font-size: 10.5px; fill: var(--ink); stroke: var(--frame); stroke-width: 3; paint-order: stroke; }
.track { stroke: var(--edge); stroke-dasharray: 2 4; fill: none; }
.hop { fill: none; stroke-width: 2.2; }
.station { stroke: var(--paper); }
.on-station { fill: var(--paper); font-size: 10.5px; font-weight: bold; }
.r0 { stroke: var(--r0); } .r1 { stroke: var(--r1); } .r2 { stroke: var(--r2); } .r3 { stroke: var(--r3); }
.r4 { stroke: var(--r4); } .r5 { stroke: var(--r5); } .r6 { stroke: var(--r6); } .r7 { stroke: var(--r7); }
.f0 { fill: var(--r0); } .f1 { fill: var(--r1); } .f2 { fill: var(--r2); } .f3 { fill: var(--r3); }
.f4 { fill: var(--r4); } .f5 { fill: var(--r5); } .f6 { fill: var(--r6); } .f7 { fill: var(--r7); }
)";

}  // namespace tutti::topo
