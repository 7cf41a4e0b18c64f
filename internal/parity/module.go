package parity

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// module returns the dotted name of the module of a network that computes a node, such as
// layer1.0.conv1, or "". It reads it from what exporters of PyTorch leave behind: the name of a
// weight, the scopes of torch.onnx's newer exporter, or the path in a node's name.
func (g *network) module(n *pb.NodeProto) string {
	for _, in := range n.Input {
		w := in
		if p := g.producer[in]; p != nil && p.GetOpType() == "DequantizeLinear" {
			w = strings.TrimSuffix(p.Input[0], "_quantized") // as onnxruntime's quantiser names weights
			in = p.Input[0]
		}
		for _, suffix := range []string{".weight", ".bias"} {
			if name, ok := strings.CutSuffix(w, suffix); ok && g.weights[in] != nil {
				return name
			}
		}
	}
	if scopes := nodeMetadata(n, "pkg.torch.onnx.name_scopes"); scopes != "" {
		// A list in Python's notation, of modules from the outermost on and then the node itself.
		parts := strings.Split(strings.Trim(scopes, "[]"), ",")
		if len(parts) > 1 {
			return strings.Trim(strings.TrimSpace(parts[len(parts)-2]), `'"`)
		}
	}
	return moduleInPath(n.GetName())
}

// moduleOf returns the module that computes a tensor, or "". Of what an operator on integers computes
// the tensor is dequantised.
func (g *network) moduleOf(name string) string {
	p := g.producer[name]
	if p != nil && p.GetOpType() == "DequantizeLinear" {
		if q := g.producer[p.Input[0]]; q != nil && rewrite.FloatOperator(q.GetOpType()) != "" {
			p = q
		}
	}
	if p == nil {
		return ""
	}
	return g.module(p)
}

// moduleInPath returns the module in a node's name such as /layer1/layer1.0/conv1/Conv, in which a
// part repeats the part before if that is a container.
func moduleInPath(name string) string {
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	if !strings.HasPrefix(name, "/") || len(parts) < 2 {
		return ""
	}
	module, previous := "", ""
	for _, p := range parts[:len(parts)-1] {
		switch {
		case module == "":
			module = p
		case strings.HasPrefix(p, previous+"."):
			module = strings.TrimSuffix(module, previous) + p
		default:
			module += "." + p
		}
		previous = p
	}
	return module
}

// fieldNodeMetadata is the number of NodeProto.metadata_props, which is newer than package pb.
const fieldNodeMetadata = 9

// nodeMetadata returns an entry of a node's metadata, or "".
func nodeMetadata(n *pb.NodeProto, key string) string {
	for raw := n.ProtoReflect().GetUnknown(); len(raw) > 0; {
		number, kind, tag := protowire.ConsumeTag(raw)
		size := protowire.ConsumeFieldValue(number, kind, raw[max(0, tag):])
		if tag < 0 || size < 0 {
			return ""
		}
		if number == fieldNodeMetadata && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(raw[tag:])
			var e pb.StringStringEntryProto
			if proto.Unmarshal(value, &e) == nil && e.GetKey() == key {
				return e.GetValue()
			}
		}
		raw = raw[tag+size:]
	}
	return ""
}

// numbered matches names that exporters count up, which mean nothing in another file.
var numbered = regexp.MustCompile(`^(\d+|(onnx::)?[A-Za-z]+[._]\d+)$`)

// moduleKeys returns a key for each layer whose module is known: the module, the operator and how
// many of these came before.
func moduleKeys(names, ops []string, module func(i int) string) map[string]int {
	keys, seen := map[string]int{}, map[string]int{}
	for i := range names {
		if m := module(i); m != "" {
			key := m + " " + ops[i]
			seen[key]++
			keys[key+" "+strconv.Itoa(seen[key])] = i
		}
	}
	return keys
}
