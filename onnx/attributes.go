package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Attrs are attributes, by name, for a node that a Builder adds to a graph. A value is an int,
// []int, float64 or float32 (both stored as float32), []float32, string, []string, bool (stored as
// 0 or 1), Type, *pb.TensorProto or *pb.GraphProto, or the *pb.AttributeProto of another node.
type Attrs map[string]any

// AttrsOf returns the attributes of a node.
func AttrsOf(n *pb.NodeProto) Attrs {
	attrs := Attrs{}
	for _, a := range n.Attribute {
		attrs[a.GetName()] = a
	}
	return attrs
}

// protos returns the attributes as messages, sorted by name, so that equal graphs have equal bytes.
func (a Attrs) protos() ([]*pb.AttributeProto, error) {
	list := make([]*pb.AttributeProto, 0, len(a))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		p, err := attribute(name, a[name])
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func intAttribute(name string, v int64) *pb.AttributeProto {
	return &pb.AttributeProto{Name: &name, Type: pb.AttributeProto_INT.Enum(), I: &v}
}

func floatAttribute(name string, v float32) *pb.AttributeProto {
	return &pb.AttributeProto{Name: &name, Type: pb.AttributeProto_FLOAT.Enum(), F: &v}
}

func attribute(name string, value any) (*pb.AttributeProto, error) {
	a := &pb.AttributeProto{Name: &name}
	switch v := value.(type) {
	case int:
		return intAttribute(name, int64(v)), nil
	case Type:
		return intAttribute(name, int64(v)), nil
	case bool:
		if v {
			return intAttribute(name, 1), nil
		}
		return intAttribute(name, 0), nil
	case float32:
		return floatAttribute(name, v), nil
	case float64:
		return floatAttribute(name, float32(v)), nil
	case []int:
		a.Type, a.Ints = pb.AttributeProto_INTS.Enum(), pbutil.Int64s(v)
	case []float32:
		a.Type, a.Floats = pb.AttributeProto_FLOATS.Enum(), v
	case string:
		a.Type, a.S = pb.AttributeProto_STRING.Enum(), []byte(v)
	case []string:
		a.Type = pb.AttributeProto_STRINGS.Enum()
		for _, s := range v {
			a.Strings = append(a.Strings, []byte(s))
		}
	case *pb.TensorProto:
		a.Type, a.T = pb.AttributeProto_TENSOR.Enum(), v
	case *pb.GraphProto:
		a.Type, a.G = pb.AttributeProto_GRAPH.Enum(), v
	case *pb.AttributeProto:
		return v, nil
	default:
		return nil, fmt.Errorf("attribute %s cannot hold a %T", name, value)
	}
	return a, nil
}

// AttrInt returns an integer attribute of a node, or fallback if it is absent.
func AttrInt(n *pb.NodeProto, name string, fallback int) int {
	return attr(n, name, fallback, func(a *pb.AttributeProto) int { return int(a.GetI()) })
}

// AttrFloat returns a float attribute of a node, or fallback if it is absent.
func AttrFloat(n *pb.NodeProto, name string, fallback float32) float32 {
	return attr(n, name, fallback, (*pb.AttributeProto).GetF)
}

// AttrString returns a string attribute of a node, or fallback if it is absent.
func AttrString(n *pb.NodeProto, name, fallback string) string {
	return attr(n, name, fallback, func(a *pb.AttributeProto) string { return string(a.GetS()) })
}

// AttrInts returns an attribute of a node that is a list of integers, or nil if it is absent.
func AttrInts(n *pb.NodeProto, name string) []int {
	return attr(n, name, nil, func(a *pb.AttributeProto) []int { return pbutil.Ints(a.Ints) })
}

// AttrFloats returns an attribute of a node that is a list of floats, or nil if it is absent.
func AttrFloats(n *pb.NodeProto, name string) []float32 { return find(n, name).GetFloats() }

// AttrStrings returns an attribute of a node that is a list of strings, or nil if it is absent.
func AttrStrings(n *pb.NodeProto, name string) []string {
	var list []string
	for _, s := range find(n, name).GetStrings() {
		list = append(list, string(s))
	}
	return list
}

func attr[T any](n *pb.NodeProto, name string, fallback T, read func(*pb.AttributeProto) T) T {
	if a := find(n, name); a != nil {
		return read(a)
	}
	return fallback
}

// AttrTensor returns a tensor attribute of a node, nil if it is absent.
func AttrTensor(n *pb.NodeProto, name string) *pb.TensorProto { return find(n, name).GetT() }

// AttrGraph returns a graph attribute of a node, nil if it is absent.
func AttrGraph(n *pb.NodeProto, name string) *pb.GraphProto { return find(n, name).GetG() }

func find(n *pb.NodeProto, name string) *pb.AttributeProto {
	for _, a := range n.Attribute {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}
