// Package pbutil has helpers for the protobuf messages of ONNX.
package pbutil

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/noether-ml/noether/onnx/pb"
)

// Shallow returns a copy that shares its fields, including those that the generated schema lacks.
func Shallow[M proto.Message](src M) M {
	from := src.ProtoReflect()
	to := from.New()
	from.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.Set(f, v)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return to.Interface().(M)
}

// Ints converts a list of int64 to int.
func Ints(v []int64) []int {
	list := make([]int, len(v))
	for i, x := range v {
		list[i] = int(x)
	}
	return list
}

// Int64s converts a list of int to int64.
func Int64s(v []int) []int64 {
	list := make([]int64, len(v))
	for i, x := range v {
		list[i] = int64(x)
	}
	return list
}

// External reports whether the data of a tensor are in another file.
func External(t *pb.TensorProto) bool { return t.GetDataLocation() == pb.TensorProto_EXTERNAL }

// Elements returns the number of elements of a shape. A negative dimension or a product above 2^59
// is an error, whose text follows the tensor's name.
func Elements(dims []int64) (int64, error) {
	n := int64(1)
	for _, d := range dims {
		if d < 0 {
			return 0, fmt.Errorf("has a negative dimension in its shape %v", dims)
		}
		if d > 0 && n > math.MaxInt64/16/d {
			return 0, fmt.Errorf("has a shape that is too large: %v", dims)
		}
		n *= d
	}
	return n, nil
}

// Subgraphs returns the graphs in the attributes of a node.
func Subgraphs(n *pb.NodeProto) []*pb.GraphProto {
	var list []*pb.GraphProto
	for _, a := range n.Attribute {
		if a.G != nil {
			list = append(list, a.G)
		}
		list = append(list, a.Graphs...)
	}
	return list
}

// EachGraph calls f for the main graph, for a graph of the nodes of each function, and for all
// subgraphs. It ends with the first error.
func EachGraph(p *pb.ModelProto, f func(*pb.GraphProto) error) error {
	if err := within(p.Graph, f); err != nil {
		return err
	}
	for _, fn := range p.Functions {
		if err := within(&pb.GraphProto{Node: fn.Node}, f); err != nil {
			return err
		}
	}
	return nil
}

func within(g *pb.GraphProto, f func(*pb.GraphProto) error) error {
	if err := f(g); err != nil {
		return err
	}
	for _, n := range g.Node {
		for _, sub := range Subgraphs(n) {
			if err := within(sub, f); err != nil {
				return err
			}
		}
	}
	return nil
}
