"""NCCL's settings for each kind of GPUDirect, as variables of the container that trains.

Sources: GoogleCloudPlatform/container-engine-accelerators, release notes of gpudirect-tcpx (2026-06-22) and of
gpudirect-tcpxo (2026-01-09), without what only makes logs longer; nccl-test.yaml of gpudirect-rdma; read 2026-11-21.
None of it was seen to run. A checker in TCPXO's plugin stops a job whose settings differ from its own list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from training_platform.resources.gpu_access import APERTURES, LIBRARIES, TCPX_SOCKETS

_CONTROL: Final = "eth0"
_CHUNKS: Final = {
    "NCCL_P2P_NET_CHUNKSIZE": "524288",
    "NCCL_P2P_PCI_CHUNKSIZE": "524288",
    "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
}
_BY_KIND: Final[Mapping[str, Mapping[str, str]]] = {
    "TCPX": {
        **_CHUNKS,
        "NCCL_ALGO": "Ring,Tree",
        "NCCL_BUFFSIZE": "4194304",
        "NCCL_CROSS_NIC": "0",
        "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
        "NCCL_GPUDIRECTTCPX_CTRL_DEV": _CONTROL,
        "NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS": "500000",
        # vCPUs of the host that are near to each card.
        "NCCL_GPUDIRECTTCPX_RX_BINDINGS": "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191",
        "NCCL_GPUDIRECTTCPX_TX_BINDINGS": "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177",
        # Google's samples mount the daemon's folder at the plugin's default, /tmp, which jobs use (unverified with it).
        "NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX": TCPX_SOCKETS,
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_NSOCKS_PERTHREAD": "4",
        "NCCL_P2P_PXN_LEVEL": "0",
        "NCCL_PROTO": "Simple",
        "NCCL_SOCKET_IFNAME": _CONTROL,
        "NCCL_SOCKET_NTHREADS": "1",
    },
    "TCPXO": {
        **_CHUNKS,
        "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
        "NCCL_BUFFSIZE": "8388608",
        "NCCL_CROSS_NIC": "0",
        "NCCL_FASTRAK_CTRL_DEV": _CONTROL,
        "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL": "0",
        "NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING": "0",
        "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": APERTURES,
        "NCCL_FASTRAK_NUM_FLOWS": "2",
        "NCCL_FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS": "600000",
        "NCCL_FASTRAK_USE_LLCM": "1",
        "NCCL_FASTRAK_USE_SNAP": "1",
        "NCCL_MIN_NCHANNELS": "4",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072",
        "NCCL_NVLS_ENABLE": "1",
        "NCCL_PROTO": "Simple,LL128",
        "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": f"{LIBRARIES}/a3plus_guest_config.textproto",
        "NCCL_SOCKET_IFNAME": _CONTROL,
        "NCCL_TUNER_CONFIG_PATH": f"{LIBRARIES}/a3plus_tuner_config.textproto",
        "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
    },
    # The rest differs by machine: gIB brings a script, /usr/local/gib/scripts/set_nccl_env.sh, which a job's own shell
    # has to read. Source of this one: Cluster Toolkit v1.95.0, examples/gke-a3-ultragpu.
    "RDMA": {"NCCL_NET": "gIB"},
}
_CARDS: Final = {"TCPX": "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", "TCPXO": "NCCL_FASTRAK_IFNAME"}


def settings(kind: str, interfaces: Sequence[str]) -> dict[str, str]:
    """Return the variables for ``TCPX``, ``TCPXO`` or ``RDMA``; ``interfaces`` are the pod's names of the cards."""
    cards = {_CARDS[kind]: ",".join(interfaces)} if kind in _CARDS else {}
    return {"LD_LIBRARY_PATH": LIBRARIES, **_BY_KIND[kind], **cards}
