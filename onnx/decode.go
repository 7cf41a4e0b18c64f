package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/pb"
)

// Numbers of fields in onnx.proto.
const (
	fieldGraph       = 7 // of ModelProto
	fieldInitializer = 5 // of GraphProto
	fieldRawData     = 9 // of TensorProto
)

// minShared is the least size, in bytes, of raw data that share the file's memory.
const minShared = 1 << 12

// decode decodes an ONNX file; large raw data of the main graph share data, not to be used
// afterwards. proto.Unmarshal alone would hold all weights twice.
func decode(data []byte) (*pb.ModelProto, error) {
	p := new(pb.ModelProto)
	var s sharedWeights
	short, ok := s.withoutWeights(data)
	if !ok || len(s.raw) == 0 {
		return p, proto.Unmarshal(data, p)
	}
	if err := proto.Unmarshal(short, p); err != nil {
		return nil, err
	}
	for i, raw := range s.raw {
		p.Graph.Initializer[i].RawData = raw
	}
	return p, nil
}

type sharedWeights struct {
	initializers int            // number of those that were visited
	raw          map[int][]byte // by the index of the initializer
}

// withoutWeights removes and records large raw data; ok is false for an invalid message.
func (s *sharedWeights) withoutWeights(model []byte) (out []byte, ok bool) {
	s.raw = map[int][]byte{}
	return replaceField(model, fieldGraph, func(graph []byte) ([]byte, bool) {
		return replaceField(graph, fieldInitializer, s.initializer)
	})
}

// initializer returns the graph's next serialised initializer without large raw data.
func (s *sharedWeights) initializer(tensor []byte) (out []byte, ok bool) {
	out, ok = replaceField(tensor, fieldRawData, func(raw []byte) ([]byte, bool) {
		delete(s.raw, s.initializers) // if the field occurs several times, the last one is valid
		if len(raw) >= minShared {
			s.raw[s.initializers] = raw[:len(raw):len(raw)]
			return nil, true
		}
		return raw, true
	})
	s.initializers++
	return out, ok
}

// replaceField replaces a field's values by f; ok is false for an invalid message or f's refusal.
func replaceField(message []byte, field protowire.Number, f func(value []byte) ([]byte, bool)) (out []byte, ok bool) {
	for len(message) > 0 {
		number, kind, head := protowire.ConsumeTag(message)
		if head < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(number, kind, message[head:])
		if size < 0 {
			return nil, false
		}
		entry := message[:head+size]
		message = message[head+size:]
		if number != field || kind != protowire.BytesType {
			out = append(out, entry...)
			continue
		}
		value, _ := protowire.ConsumeBytes(entry[head:])
		if value, ok = f(value); !ok {
			return nil, false
		}
		out = protowire.AppendBytes(append(out, entry[:head]...), value)
	}
	return out, true
}
