// Command pulumi-resource-kubernetes is Pulumi's Kubernetes provider, served from its published Go module.
//
// The builder copies schema.json and terraform-mapping.json from that module beside this file before it compiles
// (12 MB that nobody should commit), with the schema's version set to the one that we build.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, terraformMapping)
}
