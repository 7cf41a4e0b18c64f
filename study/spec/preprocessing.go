package spec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/model"
)

// Preprocessing returns the preprocessing of the entry. If it has none, preprocessor_config.json
// beside the model is read, if it exists.
func (s *Study) Preprocessing(ctx context.Context, spec Model, path string, warn func(string)) (model.Preprocess, error) {
	switch beside := filepath.Join(filepath.Dir(path), "preprocessor_config.json"); {
	case spec.Preprocess.config != nil:
		file, err := s.localPath(ctx, *spec.Preprocess.config, "")
		if err != nil {
			return model.Preprocess{}, err
		}
		return model.ReadPreprocessorConfig(file)
	case spec.Preprocess.given:
		return spec.Preprocess.Preprocess, nil
	default:
		if _, err := os.Stat(beside); err != nil {
			return model.Preprocess{}, nil
		}
		warn(fmt.Sprintf("model %s: preprocessing as %s says", spec.Name, beside))
		p, err := model.ReadPreprocessorConfig(beside)
		if err != nil {
			return p, fmt.Errorf("%w; set preprocess in the study to ignore that file", err)
		}
		return p, nil
	}
}
