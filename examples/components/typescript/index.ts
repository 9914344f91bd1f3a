// A network and a cluster with a pool of H100, in TypeScript: docs/components.md.
import { Cluster, Network, NodeServiceAccount } from "@pulumi/training-platform";

const place = {
    project: "example-train-dev",
    environment: "dev",
    labels: { "cost-center": "ml-research" },
};

const nodes = new NodeServiceAccount("nodes", { place });
const shared = new Network("shared", { place, spec: { regions: ["us-central1"] } });
const main = new Cluster("main", {
    place,
    network: shared.networkId,
    serviceAccount: nodes.email,
    spec: {
        location: "us-central1",
        subnet: { nodes: "10.10.0.0/20", pods: "10.64.0.0/16", services: "10.10.16.0/20" },
        nodePools: { h100: { machineType: "a3-highgpu-8g", zone: "us-central1-a", maxNodes: 4 } },
    },
});

export const endpoint = main.endpoint;
