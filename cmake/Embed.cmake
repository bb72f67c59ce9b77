# Writes FILE's text as a C++ string constant; called by muster_embed.
file(READ ${FILE} text HEX)
string(LENGTH "${text}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${text}")
file(WRITE ${HEADER} "#pragma once\n#include <string_view>\nnamespace muster {\nextern const std::string_view ${SYMBOL};\n}\n")
file(WRITE ${SOURCE} "#include \"embedded/${SYMBOL}.h\"\nnamespace muster {\nstatic const char ${SYMBOL}_bytes[] = {${bytes}'\\0'};\nconst std::string_view ${SYMBOL}(${SYMBOL}_bytes, ${size});\n}\n")
