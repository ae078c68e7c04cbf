//go:build tools

// Package toolchain names the program that this module's go.mod and go.sum are for: the Pulumi engine and its
// command line. It is never compiled.
package toolchain

import _ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
