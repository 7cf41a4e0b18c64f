package onnx

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/onnx/pb"
)

// fieldMetadata is the number of the field metadata_props of ModelProto, a list of keys and values.
const fieldMetadata = 14

// maxMetadata is the size of the largest entry of the metadata that ReadMetadata reads, in bytes.
const maxMetadata = 1 << 20

// WithMetadata returns a copy of the model with an entry of its metadata set.
func (m *Model) WithMetadata(key, value string) *Model {
	c := m.copy()
	var props []*pb.StringStringEntryProto
	for _, e := range c.proto.MetadataProps {
		if e.GetKey() != key {
			props = append(props, e)
		}
	}
	c.proto.MetadataProps = append(props, &pb.StringStringEntryProto{Key: new(key), Value: new(value)})
	return c
}

// WithMetadataOf returns the model with all metadata of another one in place of its own.
func (m *Model) WithMetadataOf(other *Model) *Model {
	c := m.copy()
	c.proto.MetadataProps = other.proto.MetadataProps
	return c
}

// Metadata returns an entry of the model's metadata, or "" if there is none.
func (m *Model) Metadata(key string) string {
	for _, e := range m.proto.MetadataProps {
		if e.GetKey() == key {
			return e.GetValue()
		}
	}
	return ""
}

// ReadMetadata returns an entry of the metadata of a file, "" if none has at most 1 MiB, without
// reading the graph.
func ReadMetadata(path, key string) (string, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading model %s: %w", path, withoutPath(err))
	}
	defer f.Close()
	value, err := metadata(f, key)
	if err != nil {
		return "", fmt.Errorf("reading the metadata of model %s: %w", path, err)
	}
	return value, nil
}

var errNotONNX = errors.New("this is not an ONNX model, or it is truncated")

// metadata returns a metadata value of a serialised model, or "". Contents other than metadata are
// skipped. No message exceeds maxBytes.
func metadata(r io.ReaderAt, key string) (value string, err error) {
	var head [2 * 10]byte // tag and length, or tag and number: two varints of at most 10 bytes
	for at := int64(0); ; {
		n, err := r.ReadAt(head[:], at)
		if n == 0 && err == io.EOF {
			return value, nil
		} else if err != nil && err != io.EOF {
			return "", err
		}
		number, kind, tag := protowire.ConsumeTag(head[:n])
		if tag < 0 {
			return "", errNotONNX
		}
		if kind != protowire.BytesType {
			size := protowire.ConsumeFieldValue(number, kind, head[tag:n])
			if size < 0 {
				return "", errNotONNX
			}
			at += int64(tag + size)
			continue
		}
		length, size := protowire.ConsumeVarint(head[tag:n])
		if size < 0 || length > maxBytes {
			return "", errNotONNX
		}
		at += int64(tag + size)
		if number == fieldMetadata && length <= maxMetadata {
			raw := make([]byte, length)
			var e pb.StringStringEntryProto
			if _, err := r.ReadAt(raw, at); err != nil && err != io.EOF || proto.Unmarshal(raw, &e) != nil {
				return "", errNotONNX
			}
			if e.GetKey() == key {
				value = e.GetValue()
			}
		}
		at += int64(length)
	}
}
