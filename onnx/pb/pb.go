// Package pb holds the protocol buffer messages of the ONNX format, generated from the schema that
// the ONNX project publishes. Package onnx wraps them; only code that walks a graph node by node
// needs them directly.
//
//	for _, node := range m.Proto().GetGraph().GetNode() {
//		fmt.Println(node.GetOpType(), node.GetInput(), node.GetOutput())
//	}
//
// The schema is that of IR version 8. Fields that later versions of ONNX add are kept as unknown
// fields: they are written again with the message.
package pb

//go:generate go build -o ../../bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
//go:generate protoc --plugin=protoc-gen-go=../../bin/protoc-gen-go --go_out=. --go_opt=paths=source_relative onnx.proto
