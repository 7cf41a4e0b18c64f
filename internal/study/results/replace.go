package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// CheckStudy returns an error, or with replace removes the run, if the folder holds that of a study
// of another name without a common cell.
func (f Folder) CheckStudy(p *plan.Plan, replace bool) error {
	record, err := scores.ReadRecord(f.Path("run.json"))
	if err != nil || record.Study == p.Study.Name {
		return nil // no run, a run that cannot be read, which a new run replaces, or a run of this study
	}
	for _, c := range p.Cells {
		if slices.Contains(record.Keys, c.Key) {
			return nil // the same study under a new name
		}
	}
	if replace {
		return f.clear()
	}
	return fmt.Errorf("%s holds the run of study %q, and this is %q: choose another folder with -o, or remove that run with --replace", f.dir, record.Study, p.Study.Name)
}

// clear removes the files of a run, and all .csv and .parquet files. Other files stay.
func (f Folder) clear() error {
	var errs []error
	for _, name := range slices.Concat(pictureFolders, []string{"cells", "states", "failures", "study.yaml", "run.json", "report.html", "verdict.json", pictures.Archive}) {
		errs = append(errs, filesys.RemoveAll(f.Path(name)))
	}
	for _, pattern := range []string{"*.csv", "*.parquet"} {
		files, err := fs.Glob(os.DirFS(f.dir), pattern)
		errs = append(errs, err)
		for _, file := range files {
			errs = append(errs, filesys.Remove(filepath.Join(f.dir, file)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the run in %s: %w", f.dir, err)
	}
	_, err := Create(f.dir, func(string, ...any) {})
	return err
}

// DecoderWarning returns a sentence if an earlier run decoded JPEG images with another library.
func (f Folder) DecoderWarning(decoder string) string {
	record, err := scores.ReadRecord(f.Path("run.json"))
	if err != nil || record.Engine.JPEG == "" || decoder == "" || record.Engine.JPEG == decoder {
		return ""
	}
	return fmt.Sprintf("scores of JPEG images in this folder are from the decoder %s, further ones will be from %s: pixels differ by up to 3 of 255",
		record.Engine.JPEG, decoder)
}
