/* check: the rules of the format in words. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

/* First sentence of a rule ("R22") in docs/format.md, without its full stop, or NULL. */
const char *cli_rule_sentence(const char *rule);

#endif
