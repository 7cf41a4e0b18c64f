package onnx

import (
	"path/filepath"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// followLinks replaces the names of external files that are links out of the model's folder by the
// names of their targets, relative to a common parent folder. ONNX Runtime rejects such links. The
// caches of model hubs have them: snapshots/X/model.onnx_data links to ../../blobs/HASH. The order
// of the files is kept, because SHA256 depends on it.
func (m *Model) followLinks() error {
	if len(m.files) == 0 {
		return nil
	}
	dir, err := realPath(m.dir)
	if err != nil {
		return err
	}
	targets := make([]string, len(m.files))
	outside := false
	for i, name := range m.files {
		if targets[i], err = realPath(filepath.Join(m.dir, filepath.FromSlash(name))); err != nil {
			return err
		}
		outside = outside || !isBelow(dir, targets[i])
	}
	if !outside {
		return nil
	}
	root := filepath.Dir(targets[0])
	for _, target := range targets {
		for !isBelow(root, target) && root != filepath.Dir(root) {
			root = filepath.Dir(root)
		}
	}
	renamed := map[string]string{}
	for i, target := range targets {
		name, err := filepath.Rel(root, target)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		renamed[m.files[i]], m.files[i] = name, name
	}
	m.dir = root
	return eachTensor(m.proto, func(t *pb.TensorProto, _ string) error {
		for _, e := range t.ExternalData {
			if e.GetKey() == "location" && pbutil.External(t) {
				e.Value = pbutil.Ptr(renamed[e.GetValue()])
			}
		}
		return nil
	})
}

// realPath returns the absolute path of a file without links.
func realPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", withoutPath(err)
	}
	return filepath.Abs(path)
}

func isBelow(dir, path string) bool {
	name, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(name)
}
