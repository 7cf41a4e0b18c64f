package measure

import (
	"fmt"
	"strings"
)

// The beginnings of warnings that change what the scores of a model mean. Reports show them before
// any score, and recommend no model that has one.
const (
	GuessWarning         = "no better than a guess"
	ConstantWarning      = "the predictions hardly vary"
	OverconfidentWarning = "right far less often than confident"
)

// sampleSizeWarning is the beginning of the warning of scores that are comparable only between as
// many observations.
const sampleSizeWarning = "depends on the number of samples"

// SampleSizeWarning returns the warning of a score of n observations whose expected value changes
// with n.
func SampleSizeWarning(n int) string {
	return fmt.Sprintf("%s: compare it with scores of n = %d only", sampleSizeWarning, n)
}

// DependsOnSampleSize reports whether warnings, joined by "; ", include one of SampleSizeWarning.
func DependsOnSampleSize(warnings string) bool { return strings.Contains(warnings, sampleSizeWarning) }

// ChangesMeaning reports whether a warning changes what the scores of its model mean.
func ChangesMeaning(warning string) bool {
	for _, start := range []string{GuessWarning, ConstantWarning, OverconfidentWarning} {
		if strings.HasPrefix(warning, start) {
			return true
		}
	}
	return false
}
