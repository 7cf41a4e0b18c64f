package onnx

import (
	"path/filepath"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// followLinks handles external files that are links out of the model's folder, as in hubs' caches,
// which ONNX Runtime rejects. Names are then those of the resolved files, relative to the deepest
// common folder, which becomes m.dir. The order stays, since SHA256 depends on it.
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
				e.Value = new(renamed[e.GetValue()])
			}
		}
		return nil
	})
}

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
