package rewrite

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// WithoutWeights returns a model whose large initializers are empty. Their names, types and shapes
// remain, and so do the small ones that shape inference reads. Everything that asks for the form of
// the graph answers as before, in a fraction of the memory. The result cannot be run.
func WithoutWeights(m *onnx.Model) *onnx.Model {
	p, g := m.Proto(), m.Proto().Graph
	bare := &pb.ModelProto{
		IrVersion: p.IrVersion, OpsetImport: p.OpsetImport, ProducerName: p.ProducerName, ProducerVersion: p.ProducerVersion,
		Domain: p.Domain, ModelVersion: p.ModelVersion, DocString: p.DocString, MetadataProps: p.MetadataProps, Functions: p.Functions,
		Graph: &pb.GraphProto{
			Node: g.Node, Name: g.Name, DocString: g.DocString, Input: g.Input, Output: g.Output, ValueInfo: g.ValueInfo,
			SparseInitializer: g.SparseInitializer, QuantizationAnnotation: g.QuantizationAnnotation,
		},
	}
	for _, t := range g.Initializer {
		if n, err := pbutil.Elements(t.Dims); err == nil && n > infer.MaxValues {
			t = &pb.TensorProto{Name: t.Name, DataType: t.DataType, Dims: t.Dims}
		}
		bare.Graph.Initializer = append(bare.Graph.Initializer, t)
	}
	return m.WithProto(bare)
}

// WithZeroWeights returns a model whose large float32 initializers are zeros that are made when it
// runs. Its tensors have the shapes of the model's. It takes a fraction of the memory, and its
// sessions are opened in a fraction of the time. A model of an opset below 9 is returned as it is.
func WithZeroWeights(m *onnx.Model) *onnx.Model {
	if m.Opset() < 9 {
		return m
	}
	g := pbutil.Shallow(m.Proto().Graph)
	g.Initializer = nil
	var zeros []*pb.NodeProto
	for _, t := range m.Proto().Graph.Initializer {
		n, err := pbutil.Elements(t.Dims)
		if err != nil || n <= infer.MaxValues || onnx.Type(t.GetDataType()) != onnx.Float {
			g.Initializer = append(g.Initializer, t)
			continue
		}
		shape := "shape of " + t.GetName()
		g.Initializer = append(g.Initializer, &pb.TensorProto{Name: &shape, DataType: pbutil.Ptr(int32(onnx.Int64)), Dims: []int64{int64(len(t.Dims))}, Int64Data: t.Dims})
		zeros = append(zeros, &pb.NodeProto{OpType: pbutil.Ptr("ConstantOfShape"), Input: []string{shape}, Output: []string{t.GetName()}})
	}
	g.Node = append(zeros, g.Node...)
	return m.WithGraph(g)
}
