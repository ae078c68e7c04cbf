"""One simulated GKE cluster: a real control plane, KWOK hosts, and the pods that run as local processes."""
