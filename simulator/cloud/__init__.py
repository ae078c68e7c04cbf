"""The simulated Google Cloud: the `gcp` resource types that the program uses, answered from an inventory file.

It is a Pulumi provider that runs by itself and is attached from outside (`PULUMI_DEBUG_PROVIDERS=gcp:PORT`), so
that the program, its components and the engine are the ones that reach the real cloud.

It owns what a project holds (`inventory.json`), what Google refuses, and which hosts a node pool gets. It does not
own Kubernetes: clusters and pools are handed to the cluster side as files (`cluster_files`).
It refuses every resource type, function and input that it does not know, by name: silence would pass for support.
"""
