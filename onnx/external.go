package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// A span is the range of a file that holds the data of an external tensor.
type span struct {
	file           string // relative to the model's folder
	offset, length int64  // bytes; length is -1 if the tensor does not state it
}

// spanOf returns the span of an external tensor. Its errors, as those of checkExternal, go on after
// the name of the tensor.
func spanOf(t *pb.TensorProto) (span, error) {
	s := span{length: -1}
	for _, e := range t.ExternalData {
		var err error
		switch e.GetKey() {
		case "location":
			s.file = e.GetValue()
		case "offset":
			s.offset, err = strconv.ParseInt(e.GetValue(), 10, 64)
		case "length":
			s.length, err = strconv.ParseInt(e.GetValue(), 10, 64)
		}
		if err != nil || s.offset < 0 || s.length < -1 {
			return span{}, fmt.Errorf("has external data whose %s is %q", e.GetKey(), e.GetValue())
		}
	}
	if s.file == "" {
		return span{}, errors.New("has external data without a location")
	}
	if !filepath.IsLocal(filepath.FromSlash(s.file)) {
		return span{}, fmt.Errorf("has external data in %q, outside the model's folder", s.file)
	}
	return s, nil
}

// checkExternal checks that the n elements of an external tensor are in its file, in the folder
// dir. files has the sizes of the files seen so far, in bytes, by their names in the model.
func checkExternal(t *pb.TensorProto, n int64, dir string, files map[string]int64) error {
	s, err := spanOf(t)
	if err != nil {
		return err
	}
	if dir == "" {
		return fmt.Errorf("has external data in %q, and a model in memory has no folder", s.file)
	}
	size, ok := files[s.file]
	if !ok {
		if size, err = fileSize(dir, s.file); err != nil {
			return fmt.Errorf("has external data in %q, which cannot be used: %w", s.file, err)
		}
		files[s.file] = size
	}
	if width := int64(Type(t.GetDataType()).Size()); s.length < 0 && width > 0 {
		s.length = n * width
	} else if width > 0 && s.length != n*width {
		return fmt.Errorf("has shape %v of %v but %d bytes of external data", t.Dims, Type(t.GetDataType()), s.length)
	}
	if s.offset > size || s.length > size-s.offset {
		return fmt.Errorf("ends at byte %d of external file %q, which has %d", s.offset+s.length, s.file, size)
	}
	return nil
}

// fileSize returns the size of a regular file in a folder. It follows links, also out of the
// folder, as in the caches of model hubs.
func fileSize(dir, name string) (int64, error) {
	info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return 0, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("not a regular file")
	}
	return info.Size(), nil
}

// ExternalDir returns the folder to which the names of the model's external files are relative, or
// "" if it has none.
func (m *Model) ExternalDir() string {
	if len(m.files) == 0 {
		return ""
	}
	return m.dir
}

// ExternalFiles returns the names of the model's files with weights, relative to ExternalDir. They
// are sorted by their names in the model; then the name of a link out of the model's folder is
// replaced by that of the file that it refers to.
func (m *Model) ExternalFiles() []string { return slices.Clone(m.files) }

// ListExternal returns the sorted names of the external files of the model in a file, relative to
// its folder. The external files need not exist, so that a caller can download them.
func ListExternal(path string) ([]string, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	p := new(pb.ModelProto)
	if err := proto.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("reading model %s: this is not an ONNX model, or it is truncated", path)
	}
	files := map[string]bool{}
	err = eachTensor(p, func(t *pb.TensorProto, where string) error {
		if !pbutil.External(t) {
			return nil
		}
		s, err := spanOf(t)
		if err != nil {
			return fmt.Errorf("reading model %s: %s %w", path, where, err)
		}
		files[s.file] = true
		return nil
	})
	return slices.Sorted(maps.Keys(files)), err
}

// SHA256 returns the hexadecimal hash of the model's file followed by its external files in the
// order of ExternalFiles. A model that was rewritten has the hash of the file from which the
// original model was read. For a model from memory it is the hash of Bytes. The model's file is
// hashed as it was read and only once, so that a caller can do it beside other work in advance.
func (m *Model) SHA256() (string, error) {
	if m.path == "" {
		data, err := m.Bytes()
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:]), nil
	}
	h, err := m.hashed().Clone()
	if err != nil {
		return "", fmt.Errorf("hashing model %s: %w", m.path, err)
	}
	for _, name := range m.files {
		if err := hashFile(h, filepath.Join(m.dir, filepath.FromSlash(name))); err != nil {
			return "", fmt.Errorf("hashing model %s: %w", m.path, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
