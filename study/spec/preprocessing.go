package spec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/model"
)

// Preprocessing is the preprocessing of the entry, else that of a preprocessor_config.json beside
// the model, else none.
func (s *Study) Preprocessing(ctx context.Context, spec Model, path string, warn func(string)) (model.Preprocess, error) {
	switch beside := filepath.Join(filepath.Dir(path), "preprocessor_config.json"); {
	case spec.Preprocess.config != nil:
		file, err := s.find(ctx, *spec.Preprocess.config, "")
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
			return p, fmt.Errorf("%w; name a preprocessing in the study to leave that file aside", err)
		}
		return p, nil
	}
}
