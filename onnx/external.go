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

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// A span is the range of a file that holds the data of an external tensor.
type span struct {
	file           string // relative to the model's folder
	offset, length int64  // bytes; length is -1 if the tensor does not state it
}

// Its errors, as checkExternal's, follow the tensor's name.
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

// checkExternal checks that n elements are in dir; files caches sizes in bytes.
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

// fileSize follows links, also out of the folder, as in model hubs' caches.
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

// ExternalDir returns the folder of external files, or "".
func (m *Model) ExternalDir() string {
	if len(m.files) == 0 {
		return ""
	}
	return m.dir
}

// ExternalFiles returns the weight files relative to ExternalDir, sorted by their names in the
// model, with links out of the folder replaced.
func (m *Model) ExternalFiles() []string { return slices.Clone(m.files) }

// CheckUnchanged returns an error if an external file is not what it was when the model was read.
// An engine reads these files when it opens the model, or when it runs.
func (m *Model) CheckUnchanged() error {
	for path, s := range m.states {
		if err := s.Check(path); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) externalPaths() []string {
	paths := make([]string, len(m.files))
	for i, name := range m.files {
		paths[i] = filepath.Join(m.dir, filepath.FromSlash(name))
	}
	return paths
}

// ListExternal returns a model's sorted external files, relative to its folder, which need not
// exist.
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

// SHA256 returns the hash, in hexadecimal, of the model's file and its ExternalFiles, for a
// rewritten model those it was read from, from memory of Bytes. It is computed once, as the file
// was read.
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
	for _, file := range m.externalPaths() {
		if err := hashFile(h, file); err != nil {
			return "", fmt.Errorf("hashing model %s: %w", m.path, err)
		}
	}
	if err := m.CheckUnchanged(); err != nil {
		return "", fmt.Errorf("hashing model %s: %w", m.path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashFile(w io.Writer, path string) error {
	f, err := filesys.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
