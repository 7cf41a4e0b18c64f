package measure

import "strings"

// The beginnings of warnings that change what the scores of a model mean. Reports show them before
// any score, and recommend no model that has one.
const (
	GuessWarning         = "no better than a guess"
	ConstantWarning      = "the predictions hardly vary"
	OverconfidentWarning = "right far less often than confident"
)

// ChangesMeaning reports whether a warning changes what the scores of its model mean.
func ChangesMeaning(warning string) bool {
	for _, start := range []string{GuessWarning, ConstantWarning, OverconfidentWarning} {
		if strings.HasPrefix(warning, start) {
			return true
		}
	}
	return false
}
