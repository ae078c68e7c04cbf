//go:build tools

// Package toolchain names the programs that this module's go.mod and go.sum are for: the control plane, KWOK,
// Kueue and JobSet, in one module so that they share compiled packages. It is never compiled.
package toolchain

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "sigs.k8s.io/jobset"
	_ "sigs.k8s.io/kueue/cmd/kueue"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
