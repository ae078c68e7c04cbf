"""The version ledger: the one place that says which version of what is deployed, built or required.

Owns plain constants, each with its source and the date it was seen. Everything that installs, builds or
compares a version reads it from here. Refuses floating names (`latest`, `main`, `v0`): a test checks the
shape of every entry. GKE versions are compared in `facts.gke`, not here.
"""

from typing import Final

# --- The engine and its providers (2026-12-01) -------------------------------------------------------------
# The CLI is built from the Go module github.com/pulumi/pulumi/pkg/v3.
PULUMI: Final = "3.276.0"
# An official CLI on PATH is used as it is when it lies in this range: at least the SDK's own release, and the
# same major version.
PULUMI_CLI_MINIMUM: Final = "3.272.0"
PULUMI_CLI_BELOW: Final = "4.0.0"
# PyPI `pulumi`.
PULUMI_SDK: Final = "3.272.0"
# The newest release of github.com/pulumi/pulumi/sdk/v3 that still holds the Python language host; later ones
# moved it to a module that the Go proxy does not serve. Works with the engine and the SDK above (seen).
PULUMI_LANGUAGE_HOST: Final = "3.68.0"
# PyPI `pulumi-gcp` and `pulumi-kubernetes`; the kubernetes plugin is built at the same version.
PULUMI_GCP: Final = "10.2.0"
PULUMI_KUBERNETES: Final = "4.34.2"

# --- The local control plane (2026-12-01): Go modules that build together ----------------------------------
KUBERNETES: Final = "1.36.3"
ETCD: Final = "3.6.8"
KWOK: Final = "0.8.0"

# --- Controllers on the cluster ----------------------------------------------------------------------------
# The documented minima for tpu7x sub-slicing are Kueue 0.18.2, JobSet 0.12.0 and LWS 0.8.0 (llm-d, GKE dynamic
# slicing guide, seen 2026-12-01). The codelab's 0.17.4 / 0.11.1 lie below them.
KUEUE: Final = "0.18.2"
JOBSET: Final = "0.12.0"
LWS: Final = "0.8.0"

# Charts of the three, as published by their projects; without the version, which is the ledger's.
KUEUE_CHART: Final = "oci://registry.k8s.io/kueue/charts/kueue"
JOBSET_CHART: Final = "oci://registry.k8s.io/jobset/charts/jobset"
LWS_CHART: Final = "oci://registry.k8s.io/lws/charts/lws"

# The released images of the three, tag v<version>, as their published charts carry them (release notes and
# Makefiles of the modules above). The charts inside the modules still name staging images with a branch's tag.
KUEUE_IMAGE: Final = "registry.k8s.io/kueue/kueue"
JOBSET_IMAGE: Final = "registry.k8s.io/jobset/jobset"
LWS_IMAGE: Final = "registry.k8s.io/lws/lws"

# The user-space Kueue slice controller: the exact tag of Google's own manifest (GoogleCloudPlatform/
# kubernetes-engine-samples, pull request 2144, 2026-08-07); the codelab's is the older v0.8.0-200. Its digest has
# not been seen: the tag is exact, yet its owner can move it.
SLICE_CONTROLLER: Final = "v0.9"
SLICE_CONTROLLER_IMAGE: Final = "tpuongke/kueue-slice-controller"

# --- GKE (release notes and guides, seen 2026-12-01) -------------------------------------------------------
# What a stack pins unless it says otherwise, and what the rest of this ledger was checked against.
GKE_DEFAULT: Final = "1.36.0-gke.3712000"
GKE_RELEASE_CHANNEL: Final = "RAPID"
# Sub-slicing, general availability (GKE release note 2026-08-03; llm-d guide).
GKE_MINIMUM_SUB_SLICING: Final = "1.36.0-gke.3712000"
# Super-slicing (GKE guides "Use GKE dynamic slicing" and "… with a custom scheduler").
GKE_MINIMUM_SUPER_SLICING: Final = "1.35.2-gke.1842000"
# The slice controller add-on (GoogleCloudPlatform/cluster-toolkit, precondition of its cluster module).
GKE_MINIMUM_SLICE_CONTROLLER: Final = "1.35.0-gke.274500"
# All Capacity mode reservations, which PROVISION_ONLY pools draw on.
GKE_MINIMUM_ALL_CAPACITY: Final = "1.34.0-gke.2201000"
# GKE installs the Gateway API's inference CRDs itself from here on.
GKE_MINIMUM_INFERENCE_CRDS: Final = "1.34.0-gke.1626000"
# Multi-host v6e node pools. No page seen gives the floor; this is the oldest version that a public guide was seen to
# use with ct6e-standard-4t (assumed to be enough).
GKE_MINIMUM_V6E: Final = "1.31.2-gke.1384000"
# The minor versions that this ledger was tried with; anything newer is a warning, not an error.
GKE_TESTED_MINORS: Final = ("1.36",)

# --- Serving -----------------------------------------------------------------------------------------------
GATEWAY_API: Final = "1.5.0"
# Gateway API Inference Extension: CRDs, endpoint picker and the `inferencepool` chart.
GAIE: Final = "1.5.0"
GAIE_CHART: Final = "oci://registry.k8s.io/gateway-api-inference-extension/charts/inferencepool"
ENVOY: Final = "1.40.0"
# llm-d routing sidecar beside the decode leader (codelab, 2026-06-15).
ROUTING_SIDECAR: Final = "v0.8.0"
ROUTING_SIDECAR_IMAGE: Final = "ghcr.io/llm-d/llm-d-routing-sidecar"
# llm-d's endpoint picker; the codelab's chart floats (`…-dev`, `v0`). Seen with the GAIE 1.5.0 chart (2026-12-01).
ENDPOINT_PICKER: Final = "v0.9.0"
ENDPOINT_PICKER_IMAGE: Final = "ghcr.io/llm-d/llm-d-router-endpoint-picker"
# vLLM for TPU (codelab, 2026-06-15): a dated nightly, the only build that the codelab was shown with.
VLLM_TPU: Final = "nightly-20260430-18ed615-5b39b26"
VLLM_TPU_IMAGE: Final = "docker.io/vllm/vllm-tpu"
# Pathways and JetStream (kubernetes-engine-samples ai-ml/llm-serving-tpus-jetstream/pathways, 2026-12-01);
# allow-listed images, so no digest could be read.
PATHWAYS: Final = "jax-0.5.3"
PATHWAYS_SERVER_IMAGE: Final = "us-docker.pkg.dev/cloud-tpu-v2-images/pathways/server"
PATHWAYS_PROXY_IMAGE: Final = "us-docker.pkg.dev/cloud-tpu-v2-images/pathways/proxy_server"
JETSTREAM_PATHWAYS: Final = "v0.2.0"
JETSTREAM_PATHWAYS_IMAGE: Final = "us-docker.pkg.dev/cloud-tpu-images/inference/jetstream-pathways"
JETSTREAM_HTTP: Final = "v0.2.3"
JETSTREAM_HTTP_IMAGE: Final = "us-docker.pkg.dev/cloud-tpu-images/inference/jetstream-http"
INFERENCE_CHECKPOINT: Final = "v0.2.5"
INFERENCE_CHECKPOINT_IMAGE: Final = "us-docker.pkg.dev/cloud-tpu-images/inference/inference-checkpoint"
