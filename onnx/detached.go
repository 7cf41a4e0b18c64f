package onnx

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// A Weight is an initializer that is not part of a serialised model.
type Weight struct {
	Name  string
	Type  Type
	Shape []int64
	Data  []byte // the elements, little-endian, shared with the model
}

// detachedFile is the file that external tensors of Detached refer to. It does not exist.
const detachedFile = "detached"

// Detached returns the serialised model without large initializers, of minBytes or more, and these.
// A program that takes both holds weights once, and protobuf's 2 GB do not bound them.
//
// Initializers that are inputs, in subgraphs or not raw stay in the model.
func (m *Model) Detached(minBytes int) (model []byte, weights []Weight, err error) {
	inputs := map[string]bool{}
	for _, in := range m.proto.Graph.Input {
		inputs[in.GetName()] = true
	}
	graph := pbutil.Shallow(m.proto.Graph)
	graph.Initializer = make([]*pb.TensorProto, len(m.proto.Graph.Initializer))
	for i, t := range m.proto.Graph.Initializer {
		graph.Initializer[i] = t
		if len(t.RawData) >= max(minBytes, 1) && !pbutil.External(t) && !inputs[t.GetName()] {
			weights = append(weights, Weight{Name: t.GetName(), Type: Type(t.GetDataType()), Shape: t.Dims, Data: t.RawData})
			graph.Initializer[i] = detachedTensor(t)
		}
	}
	p := pbutil.Shallow(m.proto)
	p.Graph = graph
	if size := proto.Size(p); size > maxBytes {
		return nil, nil, fmt.Errorf("serialising a model: without large weights it has %d bytes, and a message cannot exceed 2 GB", size)
	}
	if model, err = proto.Marshal(p); err != nil {
		return nil, nil, fmt.Errorf("serialising a model: %w", err)
	}
	return model, weights, nil
}

func detachedTensor(t *pb.TensorProto) *pb.TensorProto {
	external := pbutil.Shallow(t)
	external.RawData = nil
	external.DataLocation = pb.TensorProto_EXTERNAL.Enum()
	for _, e := range [][2]string{{"location", detachedFile}, {"offset", "0"}, {"length", fmt.Sprint(len(t.RawData))}} {
		external.ExternalData = append(external.ExternalData, &pb.StringStringEntryProto{Key: &e[0], Value: &e[1]})
	}
	return external
}
