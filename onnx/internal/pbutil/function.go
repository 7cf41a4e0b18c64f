package pbutil

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/pb"
)

// A Function identifies a function of a model; Overload tells those with the same domain and name
// apart.
type Function struct{ Domain, Name, Overload string }

// Numbers of fields that the generated schema lacks, since they were added to ONNX later.
const (
	functionOverload = 13
	nodeOverload     = 8
)

// Functions returns the functions of a model, the first of those with the same identity.
func Functions(p *pb.ModelProto) map[Function]*pb.FunctionProto {
	list := make(map[Function]*pb.FunctionProto, len(p.Functions))
	for _, f := range p.Functions {
		key := Function{f.GetDomain(), f.GetName(), last(Unknown(f, functionOverload))}
		if list[key] == nil {
			list[key] = f
		}
	}
	return list
}

// Called returns the identity of the function that a node calls. An operator is called if the model
// has no such function.
func Called(n *pb.NodeProto) Function {
	return Function{n.GetDomain(), n.GetOpType(), last(Unknown(n, nodeOverload))}
}

// last returns the last value of a field, the one that counts, or "".
func last(values [][]byte) string {
	if len(values) == 0 {
		return ""
	}
	return string(values[len(values)-1])
}

// Unknown returns the values, serialised strings or messages, of a field that the generated schema
// lacks.
func Unknown(m proto.Message, field protowire.Number) [][]byte {
	var values [][]byte
	for raw := []byte(m.ProtoReflect().GetUnknown()); len(raw) > 0; {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return values
		}
		raw = raw[n:]
		if number == field && kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(raw)
			if n < 0 {
				return values
			}
			values = append(values, value)
		}
		n = protowire.ConsumeFieldValue(number, kind, raw)
		if n < 0 {
			return values
		}
		raw = raw[n:]
	}
	return values
}
