"""A stand-in for the user-space slice controller, the part that turns Kueue's Workloads into Slices.

The real one is an image that only a cluster with a registry can pull. This package keeps its contract on one
machine: the same manifest deploys it, with the same flags, webhooks, certificates, messages and rules. What it
does was learnt from the public source (AI-Hypercomputer/xpk, branch slice-main, folder slice/, 2026-05-11) and
written anew; `docs/slice-controller.md` lists what is assumed.

Pure: `flags`, `shapes`, `templates`, `webhooks`, `json_patch`, `workloads`, `slices`, `states`.
With I/O: `workload_controller`, `check_controller`, `certificates`, `server`, `leadership`, `events`.

Refuses to write anything on a Workload but its own finalizer, its own admission check and its own condition.
"""
