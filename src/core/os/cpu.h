/* What only the system can say about the processor. */
#ifndef SFTI_OS_CPU_H
#define SFTI_OS_CPU_H

/* Instructions that not every 64-bit ARM processor has. */
enum { OS_ARM_SHA2 = 1, OS_ARM_CRC32 = 2 };

/* 0 on other processors. */
unsigned sfti_os_arm_instructions(void);

#endif
