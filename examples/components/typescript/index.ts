// A cluster with H100 GPUs, its queueing, and a team with a share of the GPUs.
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import * as platform from "@pulumi/training-platform";

const project = "example-train-dev";
const place = { project, environment: "dev" };
const vision = { project, environment: "dev", team: "vision" };
const pools = {
    location: "us-central1",
    nodePools: { h100: { machineType: "a3-highgpu-8g", zone: "us-central1-a", maxNodes: 4 } },
};

const network = new platform.Network("shared", { place, regions: ["us-central1"] });
const cluster = new platform.GkeCluster("main", {
    place,
    ...pools,
    network: network.networkId,
    subnet: { nodes: "10.10.0.0/20", pods: "10.64.0.0/16", services: "10.10.16.0/20" },
});
const provider = new kubernetes.Provider("main", { kubeconfig: cluster.kubeconfig, enableServerSideApply: true });

function inside(...waitsFor: pulumi.Resource[]): pulumi.ComponentResourceOptions {
    return { providers: { kubernetes: provider }, dependsOn: [cluster, ...waitsFor] };
}

const jobset = new platform.JobSet("jobset", {}, inside());
const kueue = new platform.Kueue("kueue", { place, cluster: "main", ...pools }, inside(jobset));
const flavors = new platform.ResourceFlavors("flavors", { place, cluster: "main", ...pools }, inside(kueue));

const namespace = new platform.TeamNamespace(
    "vision",
    {
        place: vision,
        members: ["group:vision@example.com"],
        googleServiceAccount: `dev-vision-jobs@${project}.iam.gserviceaccount.com`,
    },
    inside(),
);
const queues = new platform.TeamQueues(
    "vision-queues",
    {
        place: vision,
        cluster: "main",
        ...pools,
        namespace: namespace.namespace,
        shares: { h100: { nominalQuota: 16 } },
    },
    inside(flavors),
);

export const queueNames = queues.queues;
