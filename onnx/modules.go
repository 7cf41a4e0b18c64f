package onnx

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// WithModuleNames returns a model whose tensors have the names of the modules that return them, for
// a file by PyTorch's exporter that records the modules of each node (torch.onnx.export with
// dynamo=True). A tensor leaves a module if a node outside reads it. It gets the name of the
// outermost module that no other tensor leaves. The second call of a module without modules inside
// has the suffix "_1", and so on. The names of the model's outputs stay.
//
// Another tensor of a module that has modules inside is called after the module and its operator
// ("layer1.0.add"). What is outside of all modules is called after the module whose output it is
// computed from ("avgpool.reshape", "conv1.relu"), a sum or concatenation after that of its last
// operand.
//
// Select also takes the names that tensors had before, and those of the modules inside that return
// the same tensor. A model without such records is returned as it is.
func (m *Model) WithModuleNames() *Model {
	named, inside := m.moduleNames()
	if len(named) == 0 {
		return m
	}
	fixed := map[string]bool{}
	for _, x := range slices.Concat(m.proto.Graph.Input, m.proto.Graph.Output) {
		fixed[x.GetName()] = true
	}
	for name := range initializers(m.proto.Graph) {
		fixed[name] = true
	}
	m.nameBetween(named)
	captured := m.captured()
	out := *m
	out.aliases = map[string]string{}
	rename := map[string]string{}
	for tensor, module := range named {
		switch {
		case module == tensor:
		case fixed[tensor] || captured[tensor]:
			out.aliases[module] = tensor
		default:
			rename[tensor] = module
		}
	}
	dropTaken(rename, m.proto.Graph, fixed)
	p := pbutil.Shallow(m.proto)
	p.Graph = renameTensors(m.proto.Graph, rename)
	out.proto = p
	for before, now := range rename {
		out.aliases[before] = now
	}
	for module, tensor := range inside {
		if now, ok := rename[tensor]; ok {
			tensor = now
		}
		out.aliases[module] = tensor
	}
	return &out
}

// Operators that change the shape of a tensor, or take a part, a mean or a maximum of it; functions
// that a module calls between its own modules; and operators of several tensors. They are those of
// noether_ml's export by tracing.
var (
	reshaping = []string{"Flatten", "Gather", "Identity", "ReduceMax", "ReduceMean", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
	functions = []string{"AveragePool", "Clip", "Elu", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "LeakyRelu", "MaxPool", "Relu", "Sigmoid", "Softmax", "Tanh"}
	joining   = []string{"Add", "Concat"}
)

// nameBetween names tensors that no module returns.
func (m *Model) nameBetween(named map[string]string) {
	taken := map[string]bool{}
	for _, name := range named {
		taken[name] = true
	}
	near := maps.Clone(named) // the module whose output a tensor is, or is computed from
	for _, n := range m.proto.Graph.Node {
		if len(n.Output) == 0 || named[n.Output[0]] != "" {
			continue
		}
		scopes, module := moduleScopes(n), ""
		switch op := n.GetOpType(); {
		case len(scopes) > 0:
			module = scopes[len(scopes)-1]
		case len(n.Input) == 0:
		case slices.Contains(reshaping, op), scopes != nil && slices.Contains(functions, op):
			module = near[n.Input[0]]
		case slices.Contains(joining, op): // also one that the exporter's optimiser has written, without a record
			for _, name := range n.Input {
				module = cmp.Or(near[name], module)
			}
		}
		if module == "" {
			continue
		}
		base := module + "." + strings.ToLower(n.GetOpType())
		name := base
		for i := 1; taken[name]; i++ {
			name = numbered(base, i)
		}
		named[n.Output[0]], taken[name] = name, true
		near[n.Output[0]] = module
	}
}

// dropTaken removes new names that tensors have which keep theirs.
func dropTaken(rename map[string]string, g *pb.GraphProto, fixed map[string]bool) {
	taken := maps.Clone(fixed)
	for _, n := range g.Node {
		for _, name := range n.Output {
			taken[name] = true
		}
	}
	for dropped := true; dropped; {
		dropped = false
		for tensor, module := range rename {
			if _, moves := rename[module]; taken[module] && !moves {
				delete(rename, tensor)
				dropped = true
			}
		}
	}
}

// renameTensors returns a graph with other names of tensors.
func renameTensors(g *pb.GraphProto, rename map[string]string) *pb.GraphProto {
	swap := func(names []string) []string {
		names = slices.Clone(names)
		for i, name := range names {
			if to, ok := rename[name]; ok {
				names[i] = to
			}
		}
		return names
	}
	out := pbutil.Shallow(g)
	out.Node = slices.Clone(g.Node)
	for i, n := range g.Node {
		out.Node[i] = pbutil.Shallow(n)
		out.Node[i].Input, out.Node[i].Output = swap(n.Input), swap(n.Output)
	}
	out.ValueInfo = slices.Clone(g.ValueInfo)
	for i, v := range g.ValueInfo {
		if to, ok := rename[v.GetName()]; ok {
			out.ValueInfo[i] = pbutil.Shallow(v)
			out.ValueInfo[i].Name = &to
		}
	}
	return out
}

// captured returns the tensors of the main graph that subgraphs read.
func (m *Model) captured() map[string]bool {
	names := map[string]bool{}
	for _, n := range m.proto.Graph.Node {
		for _, g := range pbutil.Subgraphs(n) {
			for _, name := range captured(g) {
				names[name] = true
			}
		}
	}
	return names
}

// moduleNames returns the module of each tensor that has one, see WithModuleNames, and the tensors
// of the modules inside these that return them too.
func (m *Model) moduleNames() (named, inside map[string]string) {
	nodes := m.proto.Graph.Node
	scopes := make([][]string, len(nodes)) // names of the modules that a node is in, from the outermost
	inner := map[string]bool{}             // modules with modules inside
	readers := map[string][]int{}          // nodes, by tensor
	for i, n := range nodes {
		scopes[i] = moduleScopes(n)
		for _, module := range scopes[i][:max(0, len(scopes[i])-1)] {
			inner[module] = true
		}
		if ReadsShapeOnly(n) {
			continue
		}
		for _, name := range Reads(n) {
			readers[name] = append(readers[name], i)
		}
	}
	outputs := map[string]bool{}
	for _, x := range m.proto.Graph.Output {
		outputs[x.GetName()] = true
	}
	leaves := func(tensor, module string) bool {
		return outputs[tensor] || slices.ContainsFunc(readers[tensor], func(i int) bool {
			return scopes[i] != nil && !slices.Contains(scopes[i], module)
		})
	}
	left := map[string][]string{} // tensors that leave a module, in the order of computation
	makers := map[string]int{}    // node of each tensor
	for i, n := range nodes {
		for _, tensor := range n.Output {
			makers[tensor] = i
			for _, module := range scopes[i] {
				if leaves(tensor, module) {
					left[module] = append(left[module], tensor)
				}
			}
		}
	}
	named, inside = map[string]string{}, map[string]string{}
	for i, n := range nodes {
		for _, tensor := range n.Output {
			for _, module := range scopes[i] {
				call := slices.Index(left[module], tensor)
				if call < 0 || len(left[module]) > 1 && (inner[module] || !m.calls(left[module], makers)) {
					continue
				}
				if named[tensor] == "" {
					named[tensor] = numbered(module, call)
				} else {
					inside[numbered(module, call)] = tensor
				}
			}
		}
	}
	return named, inside
}

// calls reports whether tensors come from nodes of their own of the same type: they are then those
// of several calls of a module, not the tensors that one call returns.
func (m *Model) calls(tensors []string, makers map[string]int) bool {
	nodes := m.proto.Graph.Node
	first := makers[tensors[0]]
	for i, tensor := range tensors {
		if i > 0 && (makers[tensor] == makers[tensors[i-1]] || nodes[makers[tensor]].GetOpType() != nodes[first].GetOpType()) {
			return false
		}
	}
	return true
}

// numbered returns the name of a call of a module.
func numbered(module string, call int) string {
	if call == 0 {
		return module
	}
	return module + "_" + strconv.Itoa(call)
}

// scopesKey is the key of a node's metadata under which PyTorch's exporter writes the names of the
// modules that the node is in, from the outermost to the innermost, and its own, as a Python list.
const scopesKey = "pkg.torch.onnx.name_scopes"

// fieldNodeMetadata is the number of the field metadata_props of NodeProto, which the generated
// types lack.
const fieldNodeMetadata = 9

var pythonString = regexp.MustCompile(`'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"`)

// moduleScopes returns the names of the modules that a node is in, or nil if they are not known.
func moduleScopes(n *pb.NodeProto) []string {
	unknown := n.ProtoReflect().GetUnknown()
	for len(unknown) > 0 {
		number, kind, head := protowire.ConsumeTag(unknown)
		if head < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(number, kind, unknown[head:])
		if size < 0 {
			return nil
		}
		if number == fieldNodeMetadata && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(unknown[head:])
			var entry pb.StringStringEntryProto
			if proto.Unmarshal(value, &entry) == nil && entry.GetKey() == scopesKey {
				return scopeList(entry.GetValue())
			}
		}
		unknown = unknown[head+size:]
	}
	return nil
}

// scopeList reads a list such as "[”, 'layer1', 'layer1.0', 'add']", whose last name is the
// node's, and whose first one is that of the whole network.
func scopeList(text string) []string {
	scopes := []string{}
	for _, match := range pythonString.FindAllStringSubmatch(text, -1) {
		scopes = append(scopes, match[1]+match[2])
	}
	scopes = scopes[:max(0, len(scopes)-1)]
	return slices.DeleteFunc(scopes, func(name string) bool { return name == "" })
}
