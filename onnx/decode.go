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

// minShared is the smallest size, in bytes, of raw data that share the memory of the file's
// content.
const minShared = 1 << 12

// decode decodes the content of an ONNX file. The raw data of large initializers of the main graph
// share the memory of data, which the caller must not use afterwards. proto.Unmarshal alone would
// copy them, so that all weights would be in memory twice.
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

// sharedWeights are the raw data of initializers that are left out of a message.
type sharedWeights struct {
	initializers int            // number of those that were visited
	raw          map[int][]byte // by the index of the initializer
}

// withoutWeights returns a serialised model without the raw data of large initializers, and records
// these. ok is false if the model is not a valid protobuf message.
func (s *sharedWeights) withoutWeights(model []byte) (out []byte, ok bool) {
	s.raw = map[int][]byte{}
	return replaceField(model, fieldGraph, func(graph []byte) ([]byte, bool) {
		return replaceField(graph, fieldInitializer, s.initializer)
	})
}

// initializer returns a serialised initializer, the next of the graph, without its raw data if
// these are large.
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

// replaceField returns a serialised message in which f has replaced every value of a field of type
// bytes or message. ok is false if message is not a valid protobuf message or f returns false.
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
