//go:build tools

// Package toolchain names the program that this module's go.mod and go.sum are for: the LeaderWorkerSet manager.
// It has a module of its own because it does not compile against the control plane's Kubernetes. Never compiled.
package toolchain

import _ "sigs.k8s.io/lws/cmd"
