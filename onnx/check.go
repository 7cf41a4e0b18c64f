package onnx

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// check returns an error, with node or tensor, for a model that would fail or give wrong results.
func check(m *Model) error {
	g := m.proto.Graph
	switch v := opset(m.proto); {
	case g == nil:
		return formatError("has no graph: it is not an ONNX model, or it is truncated")
	case len(g.Node) == 0 && len(g.Output) == 0:
		return errors.New("has an empty graph")
	case v == 0 && slices.ContainsFunc(g.Node, IsStandard):
		return errors.New("does not declare its operator set (opset)")
	case v != 0 && v < MinOpset:
		return fmt.Errorf("uses opset %d, and ONNX Runtime supports %d and later: convert it with onnx.version_converter", v, MinOpset)
	}
	if err := checkCalls(m.proto); err != nil {
		return err
	}
	if err := checkTensors(m); err != nil {
		return err
	}
	return checkOrder(g)
}

// MaxCalled bounds the nodes that function calls expand to: nesting can make them exponentially
// many.
const MaxCalled = 1 << 16

// checkCalls refuses recursion and more than MaxCalled nodes.
func checkCalls(p *pb.ModelProto) error {
	if len(p.Functions) == 0 {
		return nil
	}
	functions := pbutil.Functions(p)
	sizes := map[*pb.FunctionProto]int{} // nodes that a call expands to; 0: being counted
	var count func(nodes []*pb.NodeProto) (int, error)
	count = func(nodes []*pb.NodeProto) (total int, err error) {
		for _, n := range nodes {
			if f := functions[pbutil.Called(n)]; f != nil {
				size, known := sizes[f]
				if known && size == 0 {
					return 0, fmt.Errorf("function %q calls itself", f.GetName())
				}
				if !known {
					sizes[f] = 0
					if size, err = count(f.Node); err != nil {
						return 0, err
					}
					size += len(f.Node) + 1
					sizes[f] = size
				}
				total += size
			}
			for _, g := range pbutil.Subgraphs(n) {
				size, err := count(g.Node)
				if err != nil {
					return 0, err
				}
				total += size
			}
			if total > MaxCalled {
				return 0, fmt.Errorf("%s: nested functions expand to more than %d nodes", Label(n), MaxCalled)
			}
		}
		return total, nil
	}
	_, err := count(p.Graph.Node)
	return err
}

// IsStandard reports whether a node belongs to the standard operator set.
func IsStandard(n *pb.NodeProto) bool { return n.GetDomain() == "" }

// checkTensors checks tensor data, and lists external files in m.files.
func checkTensors(m *Model) error {
	files := map[string]int64{}
	err := eachTensor(m.proto, func(t *pb.TensorProto, where string) error {
		if err := checkTensor(t, m.dir, files); err != nil {
			return fmt.Errorf("%s %w", where, err)
		}
		return nil
	})
	m.files = slices.Sorted(maps.Keys(files))
	return err
}

// checkTensor compares shape and type with the data before declared sizes are allocated.
func checkTensor(t *pb.TensorProto, dir string, files map[string]int64) error {
	n, err := pbutil.Elements(t.Dims)
	if err != nil {
		return err
	}
	if pbutil.External(t) {
		return checkExternal(t, n, dir, files)
	}
	width := Type(t.GetDataType()).Size()
	if t.RawData != nil {
		if width > 0 && int64(len(t.RawData)) != n*int64(width) {
			return fmt.Errorf("has shape %v of %v but %d bytes of data", t.Dims, Type(t.GetDataType()), len(t.RawData))
		}
		return nil
	}
	if count, known := typedLen(t); known && int64(count) != n {
		return fmt.Errorf("has shape %v but %d values", t.Dims, count)
	}
	return nil
}

// typedLen counts elements in the field of a tensor's type.
func typedLen(t *pb.TensorProto) (n int, known bool) {
	switch Type(t.GetDataType()) {
	case Float:
		return len(t.FloatData), true
	case Double:
		return len(t.DoubleData), true
	case Int64:
		return len(t.Int64Data), true
	case Uint32, Uint64:
		return len(t.Uint64Data), true
	case Int8, Uint8, Int16, Uint16, Int32, Bool, Float16, BFloat16:
		return len(t.Int32Data), true
	case String:
		return len(t.StringData), true
	}
	return 0, false
}

// checkOrder checks that tensors are produced once and nodes are in topological order.
func checkOrder(g *pb.GraphProto) error {
	produced := initializers(g)
	for _, in := range g.Input {
		produced[in.GetName()] = true
	}
	for i, n := range g.Node {
		for _, name := range Reads(n) {
			if !produced[name] {
				return missingTensorError(g.Node, i, name)
			}
		}
		for _, out := range n.Output {
			if out != "" && produced[out] {
				return fmt.Errorf("%s produces tensor %q, which exists already", Label(n), out)
			}
			produced[out] = true
		}
	}
	for _, out := range g.Output {
		if !produced[out.GetName()] {
			return fmt.Errorf("output %q is produced by no node", out.GetName())
		}
	}
	return nil
}

func missingTensorError(nodes []*pb.NodeProto, i int, name string) error {
	producers := map[string]int{}
	for j, n := range nodes {
		for _, out := range n.Output {
			producers[out] = j
		}
	}
	producer, ok := producers[name]
	if !ok {
		return fmt.Errorf("%s reads tensor %q, which no node produces", Label(nodes[i]), name)
	}
	if reaches(nodes, producers, producer, i) {
		return fmt.Errorf("%s and %s form a cycle through tensor %q", Label(nodes[i]), Label(nodes[producer]), name)
	}
	return fmt.Errorf("%s reads tensor %q before %s produces it: the nodes are not in topological order", Label(nodes[i]), name, Label(nodes[producer]))
}

func reaches(nodes []*pb.NodeProto, producers map[string]int, from, to int) bool {
	seen := map[int]bool{}
	stack := []int{from}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if i == to {
			return true
		}
		if seen[i] {
			continue
		}
		seen[i] = true
		for _, name := range Reads(nodes[i]) {
			if j, ok := producers[name]; ok {
				stack = append(stack, j)
			}
		}
	}
	return false
}
