"""What each rule set is about: its title in the policy pack, where an organisation switches sets on and off."""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "addresses": "Addresses: room for nodes and pods, ranges that overlap, ways in for webhooks and out for images.",
    "auto-provisioning": "Node auto-provisioning: pools that GKE makes by itself, within limits of the whole cluster.",
    "clusters": "Clusters by themselves: network settings, maintenance, Autopilot, the default pool, names.",
    "compute-classes": "Custom compute classes: what their schema refuses, and priorities that never bring a node.",
    "consumption": "Provisioning models: on demand, spot, flex-start, queued provisioning, reservation.",
    "disks": "Boot disks and local SSD, of node pools and of Vertex AI.",
    "encryption": "Keys of Cloud KMS beside what they encrypt.",
    "fabric": "Interfaces of GPUDirect and accelerator network profiles of one node pool.",
    "fabric-networks": "Networks between GPUs: VPCs, subnets and firewall rules beside the pools that use them.",
    "filestore": "Filestore instances.",
    "flavors": "Kueue's flavors, against the node pools that they stand for.",
    "gpu": "GPUs of node pools, against their machine types.",
    "kueue": "Kueue's ClusterQueues, as its webhooks take them.",
    "labels": "Labels: whose a resource is, on the bill and in every list, and the form that Google Cloud takes.",
    "machines": "Machine types, and the zones that offer them.",
    "network": "No machine and no control plane has an address on the internet.",
    "nodes": "Nodes of a pool: images, drivers, sharing of GPUs, labels, taints, scopes and accounts.",
    "placement": "Placement: compact pools, resource policies, workload policies.",
    "pools": "Node pools by themselves: names, how they scale, how they are upgraded and replaced.",
    "protection": "Protection against deletion, in production.",
    "reservations": "Reservations of a program beside the pools that consume them.",
    "together": "Pools, policies and accounts of one program beside their cluster.",
    "tpu": "TPU node pools: the topology of a slice, and one GKE node pool for each multi-host slice.",
    "versions": "GKE versions: floors of machines and features, release channels, pools beside their control plane.",
    "vertex": "Vertex AI persistent resources.",
    "volumes": "Volumes: StorageClasses of Filestore, and claims on classes that reach no network of ours.",
}
