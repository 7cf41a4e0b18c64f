package onnx

import "github.com/noether-ml/noether/onnx/pb"

// WithoutWeights is the model with its large initializers emptied: their names, types and shapes remain, and so do the
// small ones that shape arithmetic reads. Everything that asks for the graph's form answers as before, in a fraction of
// the memory. It cannot be run.
func (m *Model) WithoutWeights() *Model {
	p, g := m.proto, m.proto.Graph
	bare := *m
	bare.proto = &pb.ModelProto{
		IrVersion: p.IrVersion, OpsetImport: p.OpsetImport, ProducerName: p.ProducerName, ProducerVersion: p.ProducerVersion,
		Domain: p.Domain, ModelVersion: p.ModelVersion, DocString: p.DocString, MetadataProps: p.MetadataProps, Functions: p.Functions,
		Graph: &pb.GraphProto{
			Node: g.Node, Name: g.Name, DocString: g.DocString, Input: g.Input, Output: g.Output, ValueInfo: g.ValueInfo,
			SparseInitializer: g.SparseInitializer, QuantizationAnnotation: g.QuantizationAnnotation,
		},
	}
	for _, t := range g.Initializer {
		if n, err := elements(t.Dims); err == nil && n > maxArray {
			t = &pb.TensorProto{Name: t.Name, DataType: t.DataType, Dims: t.Dims}
		}
		bare.proto.Graph.Initializer = append(bare.proto.Graph.Initializer, t)
	}
	return &bare
}
